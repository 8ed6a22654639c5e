// SPDX-License-Identifier: Apache-2.0
// Leaves translated code: restores the program's native state.

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::translate::Slot;
namespace translate = arch::cpu::translate;

/// Returns true if the target has more than 48 bits. A CPU with more address bits jumps there and
/// faults one instruction later.
bool may_be_refused(TraceeAddr target) {
  const std::int64_t upper = static_cast<std::int64_t>(target.value()) >> 47;
  return upper != 0 && upper != -1;
}

}  // namespace

arch::cpu::translate::ProgramState CacheSource::program_state(
    const std::optional<cache::CodePlace>& place, const arch::cpu::UserRegs& stopped) const {
  const auto read = [this](Slot slot) { return memory_->read(slot); };
  if (!place) {
    return {.regs = stopped, .pc = stopped.pc(), .log = memory_->log_begin()};
  }
  if (place->kind == cache::CodePlace::Kind::kBlock) {
    return translate::state_in_superblock(place->map_entry, stopped, read);
  }
  if (place->kind == cache::CodePlace::Kind::kReturned) {
    return translate::state_behind_handler(stopped, read);
  }
  auto state =
      translate::state_in_dispatch_stub(place->map_entry, place->registers_saved, stopped, read);
  if (place->registers_saved) leave_syscall(state.regs);
  const bool indirect = (place->map_entry.flags & translate::kTargetInR10) != 0;
  if (!indirect) state.pc = miss_target(state.log).value_or(TraceeAddr{});
  return state;
}

/// The CPU does not jump to a non-canonical address: the branch itself faults and pushes or pops
/// nothing (except that the word that a call wrote below the stack remains). Takes back the branch
/// that was logged last, for the CPU to execute.
std::optional<decoder::LoggedExit> CacheSource::take_back_branch(translate::ProgramState& native) {
  const bool committed = (native.flags & translate::kCommitted) != 0;
  if (!committed || !may_be_refused(native.pc)) return std::nullopt;
  const auto entries = memory_->entries(native.log);
  if (entries.empty()) return std::nullopt;
  const auto exit = space_->code().exits()->find(entries.back());
  if (!exit || exit->kind != decoder::LoggedExitKind::kIndirect) return std::nullopt;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t length = process_.read_code(exit->from, bytes);
  const translate::SourceInsn insn =
      translate::decode_source(exit->from, std::span{bytes}.first(length));
  std::uint64_t& rsp = native.regs[UserReg::kRsp];
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
  native.pc = exit->from;
  native.log = native.log - sizeof(std::uint32_t);
  return exit;
}

Result<void> CacheSource::leave(Thread& thread) {
  BT_TRY(const arch::cpu::UserRegs stopped_at, thread.user_regs());
  set_inside(false);
  const auto place = space_->code().locate(stopped_at.pc());
  if (!place) {
    log::ptrace().error(
        "tid={}: left translated code at {} by itself (r10={:#x} r11={:#x} rsp={}); a signal from "
        "here is the recorder's fault, not the program's",
        thread.tid(), stopped_at.pc(), stopped_at[UserReg::kR10], stopped_at[UserReg::kR11],
        stopped_at.sp());
    disable_thread("the thread left translated code by itself");
  }
  translate::ProgramState native = program_state(place, stopped_at);
  at_insn_ = place && place->kind == cache::CodePlace::Kind::kBlock &&
             (native.flags & (translate::kCommitted | translate::kRcxIsPc)) == 0 &&
             place->map_entry.stack_add == 0;
  const auto taken_back = take_back_branch(native);
  take_log(native.log);
  if (taken_back) {
    log_.add_passed(taken_back->block, taken_back->block.branches.size());
  } else if (place && (native.flags & translate::kCommitted) == 0) {
    log_.add_passed(place->logged, place->map_entry.passed);
  } else {
    log_.add_arrival(native.pc);
  }
  native.regs[UserReg::kRip] = native.pc.value();
  native.regs[UserReg::kGsBase] = 0;
  // A call that will be repeated is not complete yet.
  const bool interrupted =
      (native.flags & translate::kRcxIsPc) != 0 && thread.syscall_will_restart();
  moved_to(interrupted ? native.pc - arch::cpu::kSyscallInsnBytes : native.pc);
  return thread.set_user_regs(native.regs);
}

}  // namespace backtrail::tracee
