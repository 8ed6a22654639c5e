// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/signal_stops.hpp"

#include <csignal>

#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"

namespace backtrail::tracee {

void SignalStops::handle(Thread& thread, int signal) {
  if (signal == SIGTRAP && thread.trap_cause() != TrapCause::kOther) {
    handle_trap(thread);
    return;
  }
  pass_or_post(thread, signal);
}

bool SignalStops::is_passed(Thread& thread, int signal) const {
  if (!settings_.pass_signals.contains(signal) || signal == SIGTRAP) return false;
  if (thread.control().action.kind != ResumeKind::kContinue) return false;
  if (!is_raised_by_insns(signal) || thread.process().breakpoints().empty()) return true;
  const auto pc = thread.pc();
  return !pc || !thread.process().breakpoints().contains(*pc);
}

void SignalStops::pass_or_post(Thread& thread, int signal) {
  cpu_sharing_.note_signal(thread);
  ThreadControl& control = thread.control();
  const auto own = control.own_signals.find(signal);
  const bool passed = signal == SIGTRAP ? settings_.pass_signals.contains(SIGTRAP) &&
                                              control.action.kind == ResumeKind::kContinue
                                        : is_passed(thread, signal);
  if (own != control.own_signals.end() || passed) {
    if (own != control.own_signals.end()) control.own_signals.erase(own);
    control.resume_signal = signal;
    runner_.go(thread);
    return;
  }
  runner_.post(thread, {.kind = StopKind::kSignal, .signal = signal});
}

void SignalStops::handle_trap(Thread& thread) {
  if (handle_debug_registers(thread)) return;
  switch (thread.trap_cause()) {
    case TrapCause::kBreakpointInsn:
      handle_breakpoint_insn(thread);
      return;
    case TrapCause::kHardware:  // of a debug register that was released meanwhile
    case TrapCause::kStep:
    case TrapCause::kHandlerEntry:
      handle_step_done(thread);
      return;
    case TrapCause::kOther:
      runner_.post(thread, {.kind = StopKind::kSignal, .signal = SIGTRAP});
      return;
  }
}

void SignalStops::handle_breakpoint_insn(Thread& thread) {
  const auto pc = thread.pc();
  if (!pc) return;
  const auto hit = breakpoint_hit(thread.process(), *pc);
  if (!hit) {
    runner_.post(thread, {.kind = StopKind::kSignal, .signal = SIGTRAP});  // the program's own int3
    return;
  }
  const TraceeAddr address = *hit;
  if (thread.control().stepping_over && thread.control().step_over_at == address) {
    // Below the lifted breakpoint is an int3 of the program's own: this was the step.
    handle_step_done(thread);
    return;
  }
  if (!thread.set_pc(address)) return;
  if (!thread.process().breakpoints().contains(address)) {  // removed meanwhile
    return runner_.go(thread);
  }
  if (conditions_.hold(thread.id(), BreakpointKind::kSoftware, address)) {
    runner_.post(thread, {.kind = StopKind::kSoftwareBreakpoint, .signal = SIGTRAP});
    return;
  }
  thread.control().step_over_at = address;
  cpu_sharing_.note_short_stop(thread);
  runner_.go(thread);
}

bool SignalStops::handle_debug_registers(Thread& thread) {
  const auto& registers = thread.process().debug_registers();
  if (registers.empty() || thread.trap_cause() == TrapCause::kBreakpointInsn) return false;
  const auto hit = registers.hit(thread.debug_status());
  if (!hit) return false;
  if (hit->access != arch::cpu::DebugAccess::kExecute) {
    runner_.post(thread,
                 {.kind = StopKind::kWatchpoint, .signal = SIGTRAP, .address = hit->address});
    return true;
  }
  if (!conditions_.hold(thread.id(), BreakpointKind::kHardware, hit->address)) {
    cpu_sharing_.note_short_stop(thread);
    runner_.go(thread);  // the kernel has set RF: the instruction runs now
    return true;
  }
  runner_.post(thread, {.kind = StopKind::kHardwareBreakpoint, .signal = SIGTRAP});
  return true;
}

void SignalStops::handle_step_done(Thread& thread) {
  ThreadControl& control = thread.control();
  if (control.action.kind == ResumeKind::kContinue) {
    cpu_sharing_.note_short_stop(thread);
  } else {
    cpu_sharing_.note_step(thread);
  }
  const bool own = thread.trap_flag().after_stop(thread) && thread.trap_cause() == TrapCause::kStep;
  const auto pc = thread.pc();
  if (!pc) return;
  if (control.no_progress_at == *pc) {
    // This step completed a system call (fork, exec) that a stop had interrupted; no instruction
    // has run yet.
    control.no_progress_at.reset();
    runner_.go(thread);
    return;
  }
  control.step_over_at.reset();
  switch (control.action.kind) {
    case ResumeKind::kRangeStep:
      if (*pc >= control.action.range_begin && *pc < control.action.range_end) {
        runner_.go(thread);
        return;
      }
      [[fallthrough]];
    case ResumeKind::kStep:
      runner_.post(thread, {.kind = StopKind::kStep, .signal = SIGTRAP});
      return;
    default:
      if (own) {
        pass_or_post(thread, SIGTRAP);
      } else {
        runner_.go(thread);
      }
      return;
  }
}

}  // namespace backtrail::tracee
