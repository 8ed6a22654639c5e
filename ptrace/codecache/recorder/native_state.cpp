// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/native_state.hpp"

#include <array>
#include <span>

#include "arch/cpu/program_abi.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;
using translate::Slot;

/// Returns true if the target has more than 48 bits. A CPU with more address bits jumps there and
/// faults one instruction later.
bool may_be_refused(TraceeAddr target) {
  const std::int64_t upper = static_cast<std::int64_t>(target.value()) >> 47;
  return upper != 0 && upper != -1;
}

/// Takes the branch that was logged last back if the CPU refuses it; see unfinished_block().
/// Returns the superblock, which is then not left any more.
std::optional<UnfinishedBlock> take_back_refused_branch(Process& process, const CodeCache& code,
                                                        const ThreadMemory& memory,
                                                        translate::ProgramState& state) {
  const bool committed = (state.flags & translate::kCommitted) != 0;
  if (!committed || !may_be_refused(state.pc)) return std::nullopt;
  const auto entries = memory.entries(state.log);
  if (entries.empty()) return std::nullopt;
  const auto exit = code.exits()->find(entries.back());
  if (!exit || exit->kind != decoder::LoggedExitKind::kIndirect) return std::nullopt;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t length = process.read_code(exit->from, bytes);
  const translate::SourceInsn insn =
      translate::decode_source(exit->from, std::span{bytes}.first(length));
  std::uint64_t& rsp = state.regs[UserReg::kRsp];
  switch (insn.kind) {
    case translate::InsnClass::kIndirectJump:
      break;
    case translate::InsnClass::kIndirectCall:
      rsp += sizeof(std::uint64_t);
      break;
    case translate::InsnClass::kReturn:
      rsp -= sizeof(std::uint64_t) + insn.stack_bytes;
      break;
    default:
      return std::nullopt;  // the instruction was overwritten meanwhile
  }
  state.pc = exit->from;
  state.log = state.log - sizeof(std::uint32_t);
  return UnfinishedBlock{exit->block, exit->block_number, exit->block.branches.size(),
                         code.exits()->values().before_exit(entries.back()), state.pc};
}

}  // namespace

bool can_run_translated(const arch::cpu::UserRegs& regs) {
  // Translated code makes unaligned accesses of its own.
  constexpr std::uint64_t kFlags = arch::cpu::kTrapFlag | arch::cpu::kAlignmentFlag;
  return regs[UserReg::kCs] == arch::cpu::kCodeSegment64 && regs[UserReg::kGsBase] == 0 &&
         regs[UserReg::kGs] == 0 && (regs[UserReg::kEflags] & kFlags) == 0;
}

arch::cpu::UserRegs translated_state(const arch::cpu::UserRegs& native, ThreadMemory& memory,
                                     TraceeAddr translation) {
  memory.write(Slot::kR10, native[UserReg::kR10]);
  memory.write(Slot::kR11, native[UserReg::kR11]);
  arch::cpu::UserRegs regs = native;
  regs[UserReg::kR11] = memory.log_begin().value();
  regs[UserReg::kRip] = translation.value();
  regs[UserReg::kGsBase] = memory.page().value();
  leave_syscall(regs);
  return regs;
}

translate::ProgramState program_state(const CodeCache& code, const ThreadMemory& memory,
                                      const std::optional<CodePlace>& place,
                                      const arch::cpu::UserRegs& stopped) {
  const auto read = [&](Slot slot) { return memory.read(slot); };
  if (!place) {
    return {.regs = stopped, .pc = stopped.pc(), .log = memory.log_begin()};
  }
  if (place->kind == CodePlace::Kind::kBlock) {
    return translate::state_in_superblock(place->map_entry, stopped, read);
  }
  if (place->kind == CodePlace::Kind::kReturned) {
    return translate::state_behind_handler(stopped, read);
  }
  auto state =
      translate::state_in_dispatch_stub(place->map_entry, place->registers_saved, stopped, read);
  if (place->registers_saved) leave_syscall(state.regs);
  const bool indirect = (place->map_entry.flags & translate::kTargetInR10) != 0;
  if (!indirect) {
    const auto exit = last_exit(code, memory, state.log);
    state.pc = exit ? exit->to : TraceeAddr{};
  }
  return state;
}

bool is_before_insn(const std::optional<CodePlace>& place, const translate::ProgramState& state) {
  return place && place->kind == CodePlace::Kind::kBlock &&
         (state.flags & (translate::kCommitted | translate::kRcxIsPc)) == 0 &&
         place->map_entry.stack_add == 0 && !place->map_entry.is_recording;
}

std::optional<translate::Exit> last_exit(const CodeCache& code, const ThreadMemory& memory,
                                         TraceeAddr log) {
  const auto entries = memory.entries(log);
  if (entries.empty()) return std::nullopt;
  auto exit = code.exit(entries.back());
  if (exit && exit->kind == translate::ExitKind::kIndirect) {
    exit->to = TraceeAddr{memory.read(Slot::kTarget)};
  }
  return exit;
}

std::optional<UnfinishedBlock> unfinished_block(Process& process, const CodeCache& code,
                                                const ThreadMemory& memory,
                                                const std::optional<CodePlace>& place,
                                                translate::ProgramState& state) {
  if (auto taken_back = take_back_refused_branch(process, code, memory, state)) return taken_back;
  if (!place || (state.flags & translate::kCommitted) != 0) return std::nullopt;
  return UnfinishedBlock{place->logged, place->number, place->map_entry.passed, place->values,
                         state.pc};
}

}  // namespace backtrail::tracee::cache
