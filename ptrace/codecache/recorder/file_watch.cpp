// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/file_watch.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "arch/base/value_kind.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

namespace {

/// Returns what a call of another form than SYSCALL in 64-bit code may change, whose number is that
/// of a 32-bit call; nullopt if that is no mapping.
std::optional<MappingChange> mapping_change_of_32(const arch::cpu::UserRegs& regs) {
  // mmap, munmap, ipc (shmat), mprotect, mremap, mmap2, madvise, remap_file_pages, pkey_mprotect,
  // shmat, shmdt, process_madvise: linux/arch/x86/entry/syscalls/syscall_32.tbl.
  constexpr std::array kMappings{90, 91, 117, 125, 163, 192, 219, 257, 380, 397, 398, 440};
  const auto number = static_cast<std::int32_t>(syscall_number(regs));
  if (std::ranges::find(kMappings, number) == kMappings.end()) return std::nullopt;
  return any_mapping_change();
}

}  // namespace

void FileWatch::change_mappings(const MappingChange& change) {
  for (SteppedMemory* memory : SteppedMemory::in_memory_of(process_)) {
    memory->change_mappings(change);
  }
}

void FileWatch::begin(Thread& thread) {
  in_call_ = true;
  const auto regs = thread.user_regs();
  const bool is_known = regs && process_.isa() == arch::Isa::kAmd64 &&
                        arch::cpu::is_syscall(process_.insn_bytes(regs->pc()));
  // The number of a call of another form than SYSCALL in 64-bit code means another call.
  if (!is_known) process_.code_writers->note_unseen_calls();
  if (!regs) return;
  if (process_.isa() == arch::Isa::kAmd64) {
    call_ = FileCall::begin(thread, *regs, effect_of(*regs), *process_.code_writers);
  }
  // Once before the call, for other threads, and once after it, for what they saw meanwhile.
  mappings_ = mapping_change_of_32(*regs);
  if (is_known) {
    const bool changes = effect_of(*regs) == SyscallEffect::kMappings;
    mappings_ = changes ? std::optional{mapping_change_of(*regs)} : std::nullopt;
  }
  if (mappings_) change_mappings(*mappings_);
}

void FileWatch::end(Thread& thread) {
  // A call that waits and is interrupted continues later.
  if (!in_call_ || thread.in_syscall() || thread.syscall_will_restart()) return;
  in_call_ = false;
  if (process_.stepped_memory) process_.stepped_memory->note_call();
  if (const auto change = std::exchange(mappings_, std::nullopt)) change_mappings(*change);
  if (call_) std::exchange(call_, std::nullopt)->end(thread, *process_.code_writers);
}

void FileWatch::ran_unseen() {
  change_mappings(any_mapping_change());
}

std::vector<decoder::ValueFact> FileWatch::tell_memory(arch::ValueKind kind) {
  return SteppedMemory::of(process_)->constant().tell(told_, kind);
}

std::vector<decoder::ValueFact> FileWatch::tell_all_memory() {
  return SteppedMemory::of(process_)->constant().all(arch::kBecomesConstantKind);
}

void FileWatch::code_written(TraceeAddr begin, TraceeAddr end) {
  for (SteppedMemory* memory : SteppedMemory::in_memory_of(process_)) memory->written(begin, end);
}

}  // namespace backtrail::tracee::cache
