// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/entry_conditions.hpp"

#include <csignal>
#include <utility>

#include <sys/ptrace.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/recorder/fellow_threads.hpp"
#include "ptrace/codecache/recorder/native_state.hpp"
#include "ptrace/codecache/recorder/thread_part.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

bool is_plain_stop(Thread& thread) {
  const WaitStatus& status = thread.status();
  return status.is_interrupt_stop() ||
         (status.kind == WaitKind::kStopped && status.signal == SIGTRAP &&
          thread.trap_cause() == TrapCause::kStep);
}

void EntryConditions::disable(std::string why) {
  if (!why_disabled_.empty()) return;
  log::ptrace().info("pid={}: stepping from here on: {}", process_.pid(), why);
  why_disabled_ = std::move(why);
}

bool EntryConditions::excludes_for_good() const {
  return !why_disabled_.empty() || process_.isa() != arch::Isa::kAmd64;
}

bool EntryConditions::allows(Thread& thread, const arch::cpu::UserRegs& regs) const {
  if (excludes_for_good() || !can_run_translated(regs)) return false;
  const WaitStatus& status = thread.status();
  const bool between = status.kind == WaitKind::kStopped || status.is_event(PTRACE_EVENT_STOP);
  if (!between || status.is_group_stop() || thread.syscall_will_restart()) return false;
  if (process_.lifted_for_vfork || !everybody_recorded(process_)) return false;
  const auto& space = process_.cache_space;
  return (part_ || is_plain_stop(thread)) && !(space && space->disabled());
}

}  // namespace backtrail::tracee::cache
