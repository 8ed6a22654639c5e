// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/stepper.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "arch/base/bytes.hpp"
#include "arch/base/log.hpp"
#include "arch/base/page.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/affinity_calls.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/signal_frame.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::InsnKind;

constexpr TraceeAddr kVsyscallPage{0xffffffffff600000};

/// Returns true for instructions that may resume right after themselves, which needs no record.
bool returns_behind_itself(InsnKind kind) {
  return kind == InsnKind::kSystemCall || kind == InsnKind::kFarTransfer ||
         kind == InsnKind::kConditionalJump;
}

/// Returns true if `insn` can have led to `now`, other than by falling through.
bool explains(const arch::InsnFacts& insn, TraceeAddr now) {
  switch (insn.kind) {
    case InsnKind::kOther:
      return false;
    case InsnKind::kConditionalJump:
    case InsnKind::kJump:
    case InsnKind::kCall:
      return now == insn.target;
    default:
      return true;
  }
}

}  // namespace

Stepper::Stepper(Process& process, StepperUser& user, std::unique_ptr<CallWatch> calls)
    : process_{process}, user_{user}, calls_{std::move(calls)}, signals_{process} {}

void Stepper::start_at(TraceeAddr pc) {
  user_.push(decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, pc));
  pc_ = pc;
}

const arch::InsnFacts& Stepper::fetch() {
  const auto there = process_.insn_bytes(*pc_);
  const std::size_t available = there.size();
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  std::copy(there.begin(), there.end(), bytes.begin());
  Seen& seen = seen_[*pc_];
  const bool first_time = seen.available == 0;
  const std::size_t known = std::max<std::size_t>(seen.facts.length, 1);
  if (!first_time && available >= known &&
      std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(known),
                 seen.bytes.begin())) {
    return seen.facts;
  }
  if (!first_time) {
    user_.flush_records();  // consumers still have to look at the code of these records
    process_.insns().invalidate(*pc_, *pc_ + arch::kMaxInsnBytes);
  }
  seen.bytes = bytes;
  seen.available = static_cast<std::uint8_t>(available);
  seen.facts = arch::decode_insn(process_.isa(), *pc_, std::span{bytes}.first(available));
  return seen.facts;
}

Result<void> Stepper::resume(Thread& thread, const SourceResume& how) {
  if (!pc_) {
    BT_TRY(const TraceeAddr pc, thread.next_pc());
    start_at(pc);
  }
  how_ = how;
  delivering_ = how.signal != 0;
  insn_ = fetch();
  vsyscall_returns_to_ = at_vsyscall() ? return_address(thread) : std::nullopt;
  signals_.begin_step(thread, how.signal, insn_.kind == InsnKind::kSystemCall);
  if (!how.step && !delivering_ && process_.isa() == arch::Isa::kAmd64) {
    if (const RestartableSection* section = section_ahead(thread)) {
      section_from_ = *pc_;
      return run_section(thread, *section);
    }
  }
  if (insn_.kind == InsnKind::kSystemCall) {
    forget_area_before_rseq(thread);
    show_own_affinity(process_, thread);
    calls_->begin(thread);
  }
  guard_.before_step(thread, insn_.kind == InsnKind::kSystemCall);
  // After an exec the call belongs to another program.
  const bool at_syscall = insn_.kind == InsnKind::kSystemCall || thread.in_syscall();
  const bool watch_syscall = how.syscalls && !how.step && !delivering_ && at_syscall;
  if (watch_syscall) return thread.run(RunRequest::kSyscall, how.signal);
  const Seen& seen = seen_[*pc_];
  thread.trap_flag().before_step(thread, *pc_, std::span{seen.bytes}.first(seen.available));
  return thread.run(RunRequest::kStep, how.signal);
}

StopVerdict Stepper::on_stop(Thread& thread, const WaitStatus& status) {
  process_.own_affinity.end_call(thread.tid());
  end_call(thread);
  const StopVerdict verdict = section_ ? section_stop(thread, status) : stepped(thread, status);
  if (verdict == StopVerdict::kReport) {
    signals_.end_slice(thread);
    TrapGuard::repair(thread);
  }
  return verdict;
}

StopVerdict Stepper::stepped(Thread& thread, const WaitStatus& status) {
  const auto now = thread.pc();
  if (!now) return StopVerdict::kReport;
  if (!pc_) {
    start_at(thread.next_pc().value_or(*now));
    return StopVerdict::kReport;
  }
  const bool own = thread.trap_flag().after_stop(thread);
  if (status.kind != WaitKind::kStopped || status.signal != SIGTRAP) {
    if (status.is_event(PTRACE_EVENT_STOP)) {
      guard_.after_other_stop(thread, *now != *pc_);
      if (*now != *pc_) overtaken_own_ = own;
    }
    account_other_stop(thread, status, *now);
    return StopVerdict::kReport;
  }
  std::optional<bool> late = std::exchange(overtaken_own_, std::nullopt);
  switch (thread.trap_cause()) {
    case TrapCause::kBreakpointInsn:
      guard_.after_step(thread);
      // At a breakpoint of the debugger nothing was executed and the engine moves the pc back. The
      // program's own int3 was executed.
      if (!breakpoint_hit(process_, *now)) retire(*now);
      return StopVerdict::kReport;
    case TrapCause::kHandlerEntry:
      guard_.disarm();
      handler_entered(thread, *now);
      break;
    case TrapCause::kStep:
      if (*now != *pc_) late.reset();
      guard_.after_step(thread);
      retire(*now);
      signals_.end_step(thread);
      thread.trap_flag().set_own_trap(late.value_or(own));
      if (late.value_or(own)) return StopVerdict::kReport;
      break;
    case TrapCause::kHardware:
      guard_.after_step(thread);
      retire(*now);
      return StopVerdict::kReport;
    case TrapCause::kOther:
      if (guard_.swallowed_by_pending(thread)) {
        retire(*now);
        break;
      }
      account_other_stop(thread, status, *now);
      return StopVerdict::kReport;
  }
  if (how_.step || thread.stop_wanted()) return StopVerdict::kReport;
  const auto& debug = process_.debug_registers();
  if (!debug.empty() && debug.hit(thread.debug_status())) return StopVerdict::kReport;
  user_.go_on(thread, SourceResume{.step = false, .syscalls = how_.syscalls, .signal = 0});
  return StopVerdict::kResumed;
}

void Stepper::retire(TraceeAddr now) {
  const TraceeAddr from = *pc_;
  pc_ = now;
  if (ran_vsyscall(from, now)) return;
  if (!insn_.known()) {
    if (now != from) user_.push(decoder::gap(decoder::GapReason::kUndecodable, from, now));
    return;
  }
  const TraceeAddr next = from + insn_.length;
  // A REP iteration, or no progress.
  if (now == from && !(insn_.is_branch() && insn_.target == from)) return;
  ++instructions_;
  if (const auto seen = seen_.find(from); seen != seen_.end()) {
    user_.executed(from, {seen->second.bytes, insn_});
  }
  if (now == next && (!insn_.is_branch() || returns_behind_itself(insn_.kind))) return;
  if (explains(insn_, now)) {
    user_.push(decoder::branch(from, now));
  } else if (!ran_along(from, next, now)) {
    process_.restartable.suspect(from);
    user_.push(decoder::gap(decoder::GapReason::kNotRecorded, from, now));
  }
}

bool Stepper::ran_along(TraceeAddr first, TraceeAddr second, TraceeAddr now) {
  constexpr std::array<std::uint8_t, 2> kCpuid{0x0f, 0xa2};
  std::array<std::uint8_t, kCpuid.size()> bytes{};
  if (process_.read_code(first, bytes) != bytes.size() || bytes != kCpuid) return false;
  const auto way = way_from(second, now);
  if (way) add_second(second, now, *way);
  return way.has_value();
}

bool Stepper::at_vsyscall() const {
  return process_.isa() == arch::Isa::kAmd64 && *pc_ >= kVsyscallPage &&
         *pc_ - kVsyscallPage < kPageBytes;
}

std::optional<TraceeAddr> Stepper::return_address(Thread& thread) {
  const auto regs = thread.user_regs();
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  if (!regs || process_.read_memory(regs->sp(), bytes) != bytes.size()) return std::nullopt;
  return TraceeAddr{load_le<std::uint64_t>(bytes, 0)};
}

bool Stepper::ran_vsyscall(TraceeAddr from, TraceeAddr now) {
  const auto second = std::exchange(vsyscall_returns_to_, std::nullopt);
  if (!second || now == from || now == *second) return false;
  const auto way = way_from(*second, now);
  if (!way) return false;
  user_.push(decoder::gap(decoder::GapReason::kUndecodable, from, *second));
  add_second(*second, now, *way);
  return true;
}

std::optional<Stepper::Way> Stepper::way_from(TraceeAddr insn, TraceeAddr now) {
  const arch::InsnFacts& facts = process_.insns().at(insn);
  const bool conditional = facts.kind == InsnKind::kConditionalJump;
  if (!facts.known() || (returns_behind_itself(facts.kind) && !conditional)) return std::nullopt;
  if (now == insn + facts.length && (conditional || !facts.is_branch())) return Way::kFallsThrough;
  return explains(facts, now) ? std::optional{Way::kBranches} : std::nullopt;
}

void Stepper::add_second(TraceeAddr insn, TraceeAddr now, Way way) {
  ++instructions_;
  if (way == Way::kBranches) user_.push(decoder::branch(insn, now));
}

void Stepper::handler_entered(Thread& thread, TraceeAddr handler) {
  delivering_ = false;
  signals_.handler_entered(thread);
  // An interrupted system call was either finished (EINTR) or will be repeated: the frame says
  // where the handler returns to.
  const TraceeAddr next = *pc_ + insn_.length;
  std::optional<TraceeAddr> from = thread.trap_flag().handler_returns_to();
  if (!from) {
    if (const auto saved = saved_pc(thread, process_, *pc_, next)) from = saved->pc;
  }
  user_.push(decoder::async_transfer(from.value_or(*pc_), handler));
  pc_ = handler;
}

void Stepper::account_other_stop(Thread& thread, const WaitStatus& status, TraceeAddr now) {
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    user_.push(decoder::gap(decoder::GapReason::kExec, TraceeAddr{}, now));
    user_.flush_records();
    seen_.clear();
    rseq_area_.reset();
    pc_ = now;
    return;
  }
  if (now == *pc_) return;
  if (insn_.kind == InsnKind::kSystemCall && now == *pc_ + insn_.length) {
    // The call is not complete: it has only been entered, or it may be repeated.
    if (thread.in_syscall() || thread.syscall_will_restart()) return;
  }
  retire(now);
}

std::optional<TraceeAddr> Stepper::rseq_area(Thread& thread) {
  // Translated code registers one without a stop.
  if (!rseq_area_ || *rseq_area_ == TraceeAddr{}) {
    const auto area = request::rseq_area(thread.tid());
    rseq_area_ = area ? area->address : TraceeAddr{};
  }
  return *rseq_area_ == TraceeAddr{} ? std::nullopt : rseq_area_;
}

void Stepper::forget_area_before_rseq(Thread& thread) {
  if (!rseq_area_) return;
  const auto regs = thread.user_regs();
  if (!regs || syscall_number(*regs) == SYS_rseq) rseq_area_.reset();
}

const RestartableSection* Stepper::section_ahead(Thread& thread) {
  RestartableSections& sections = process_.restartable;
  if (sections.suspected(*pc_)) {
    if (const auto area = rseq_area(thread)) (void)sections.learn_from(process_, *area);
  }
  return sections.empty() ? nullptr : sections.beginning_at(*pc_ + insn_.length);
}

Result<void> Stepper::run_section(Thread& thread, const RestartableSection& section) {
  section_ = section;
  guard_.before_step(thread, false);
  // A way out that gets no debug register may go unseen.
  (void)thread.set_own_breakpoints(section.ways_out());
  return thread.run(RunRequest::kContinue, 0);
}

StopVerdict Stepper::section_stop(Thread& thread, const WaitStatus& status) {
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
  if (!left && !section.contains(now) && now != section_from_) {
    user_.ran_unseen();
    calls_->ran_unseen();
  }
  if (cause != TrapCause::kHardware) return StopVerdict::kReport;
  guard_.after_step(thread);
  const auto& debug = process_.debug_registers();
  const bool asked_for = !debug.empty() && debug.hit(thread.debug_status());
  if (asked_for || !left || thread.stop_wanted()) return StopVerdict::kReport;
  user_.go_on(thread, SourceResume{.step = false, .syscalls = how_.syscalls, .signal = 0});
  return StopVerdict::kResumed;
}

void Stepper::account_section(const RestartableSection& section, TraceeAddr now) {
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
    user_.push(decoder::branch(jumps.front(), now));
  } else {
    user_.push(decoder::gap(decoder::GapReason::kNotRecorded, from, now));
  }
}

void Stepper::pc_written(TraceeAddr from, TraceeAddr to) {
  if (!pc_ || from == to) return;
  user_.push(decoder::gap(decoder::GapReason::kPcChanged, from, to));
  pc_ = to;
}

void Stepper::detach(Thread& thread) {
  signals_.slice().end(thread);
  TrapGuard::repair_from_any_stop(thread);
  // The program's action for SIGTRAP is unknown once it has run untraced.
  if (!process_.trap_action.damaged) process_.trap_action = {};
}

}  // namespace backtrail::tracee
