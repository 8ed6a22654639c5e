// SPDX-License-Identifier: Apache-2.0
// rseq critical sections under the `step` source: they run at full speed, from before their first
// instruction to an exit.

#include <algorithm>
#include <csignal>

#include <sys/syscall.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/step_source.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {

std::optional<TraceeAddr> StepSource::rseq_area(Thread& thread) {
  if (!rseq_area_) {
    const auto area = request::rseq_area(thread.tid());
    rseq_area_ = area ? area->address : TraceeAddr{};
  }
  return *rseq_area_ == TraceeAddr{} ? std::nullopt : rseq_area_;
}

void StepSource::forget_area_before_rseq(Thread& thread) {
  if (!rseq_area_) return;
  const auto regs = thread.user_regs();
  if (!regs || syscall_number(*regs) == SYS_rseq) rseq_area_.reset();
}

const RestartableSection* StepSource::section_ahead(Thread& thread) {
  RestartableSections& sections = process_.restartable;
  if (sections.suspected(*pc_)) {
    if (const auto area = rseq_area(thread)) (void)sections.learn_from(process_, *area);
  }
  return sections.empty() ? nullptr : sections.beginning_at(*pc_ + insn_.length);
}

Result<void> StepSource::run_section(Thread& thread, const RestartableSection& section) {
  section_ = section;
  guard_.before_step(thread, false);
  // A way out that gets no debug register may go unseen.
  (void)thread.set_own_breakpoints(section.ways_out());
  return thread.run(RunRequest::kContinue, 0);
}

StopVerdict StepSource::section_stop(Thread& thread, const WaitStatus& status) {
  const RestartableSection section = *std::exchange(section_, std::nullopt);
  thread.set_own_breakpoints({});
  const auto pc = thread.pc();
  if (!pc) return StopVerdict::kReport;
  const bool trap = status.kind == WaitKind::kStopped && status.signal == SIGTRAP;
  const TrapCause cause = trap ? thread.trap_cause() : TrapCause::kOther;
  const bool breakpoint =
      cause == TrapCause::kBreakpointInsn && breakpoint_hit(process_, *pc).has_value();
  const TraceeAddr now = breakpoint ? *pc - 1 : *pc;
  account_section(section, now);
  const auto ways_out = section.ways_out();
  const bool left = std::find(ways_out.begin(), ways_out.end(), now) != ways_out.end();
  if (!left && !section.contains(now) && now != section_from_) ran_unseen();
  if (cause != TrapCause::kHardware) return StopVerdict::kReport;
  guard_.after_step(thread);
  const auto& debug = process_.debug_registers();
  const bool asked_for = !debug.empty() && debug.hit(thread.debug_status());
  if (asked_for || !left || thread.stop_wanted()) return StopVerdict::kReport;
  (void)resume(thread, SourceResume{.step = false, .syscalls = how_.syscalls, .signal = 0});
  return StopVerdict::kResumed;
}

void StepSource::account_section(const RestartableSection& section, TraceeAddr now) {
  const TraceeAddr from = section_from_;
  pc_ = now;
  insn_ = {};
  if (now == from) return;
  const bool inside = section.contains(now) || now == section.end;
  if (inside && section.straight) return;
  std::vector<TraceeAddr> jumps;
  for (const auto& exit : section.exits) {
    if (exit.to == now) jumps.push_back(exit.from);
  }
  if (section.straight && jumps.size() == 1 && now != section.abort) {
    push(decoder::branch(jumps.front(), now));
  } else {
    push(decoder::gap(decoder::GapReason::kNotRecorded, from, now));
  }
}

}  // namespace backtrail::tracee
