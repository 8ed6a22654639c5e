// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/file_watch.hpp"

#include <utility>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

namespace {

/// Notes a call of another form than SYSCALL in 64-bit code, whose number means another call.
void note_other_call(Thread& thread) {
  Process& process = thread.process();
  const auto pc = thread.pc();
  const bool is_known =
      pc && process.isa() == arch::Isa::kAmd64 && arch::cpu::is_syscall(process.insn_bytes(*pc));
  if (!is_known) process.code_writers->note_unseen_calls();
}

}  // namespace

void FileWatch::begin(Thread& thread) {
  note_other_call(thread);
  Process& process = thread.process();
  const auto regs = thread.user_regs();
  if (!regs || process.isa() != arch::Isa::kAmd64) return;
  call_ = FileCall::begin(thread, *regs, effect_of(*regs), *process.code_writers);
}

void FileWatch::end(Thread& thread) {
  // A call that waits and is interrupted continues later.
  if (!call_ || thread.in_syscall() || thread.syscall_will_restart()) return;
  std::exchange(call_, std::nullopt)->end(thread, *thread.process().code_writers);
}

}  // namespace backtrail::tracee::cache
