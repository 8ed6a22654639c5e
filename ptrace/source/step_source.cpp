// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/step_source.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "arch/base/bytes.hpp"
#include "arch/base/log.hpp"
#include "arch/base/page.hpp"
#include "arch/cpu/program_abi.hpp"
#include "decoder/trace/stream_pin.hpp"
#include "ptrace/source/affinity_calls.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/tracee/breakpoint_hit.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/signal_frame.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::InsnKind;
using arch::cpu::kTrapFlag;
using arch::cpu::UserReg;

constexpr std::size_t kBatchRecords = 512;
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

StepSource::StepSource(Process& process, decoder::TraceConsumer& sink,
                       std::unique_ptr<CallWatch> calls)
    : process_{process}, sink_{sink}, calls_{std::move(calls)} {
  pending_.reserve(kBatchRecords);
}

void StepSource::start_at(TraceeAddr pc) {
  push(decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, pc));
  pc_ = pc;
}

const arch::InsnFacts& StepSource::fetch() {
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
    flush();  // consumers still have to look at the code of these records
    process_.insns().invalidate(*pc_, *pc_ + arch::kMaxInsnBytes);
  }
  seen.bytes = bytes;
  seen.available = static_cast<std::uint8_t>(available);
  seen.facts = arch::decode_insn(process_.isa(), *pc_, std::span{bytes}.first(available));
  return seen.facts;
}

Result<void> StepSource::resume(Thread& thread, const SourceResume& how) {
  if (!pc_) {
    BT_TRY(const TraceeAddr pc, thread.next_pc());
    start_at(pc);
  }
  how_ = how;
  delivering_ = how.signal != 0;
  insn_ = fetch();
  vsyscall_returns_to_ = at_vsyscall() ? return_address(thread) : std::nullopt;
  note_signals(thread, how);
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

StopVerdict StepSource::on_stop(Thread& thread, const WaitStatus& status) {
  process_.own_affinity.end_call(thread.tid());
  end_call(thread);
  const StopVerdict verdict = section_ ? section_stop(thread, status) : stepped(thread, status);
  if (verdict == StopVerdict::kReport) {
    end_slice(thread);
    TrapGuard::repair(thread);
  }
  return verdict;
}

StopVerdict StepSource::stepped(Thread& thread, const WaitStatus& status) {
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
      clear_trap_flag_leak(thread);
      end_signal_call(thread);
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
        clear_trap_flag_leak(thread);
        break;
      }
      account_other_stop(thread, status, *now);
      return StopVerdict::kReport;
  }
  if (how_.step || thread.stop_wanted()) return StopVerdict::kReport;
  const auto& debug = process_.debug_registers();
  if (!debug.empty() && debug.hit(thread.debug_status())) return StopVerdict::kReport;
  // If the thread is gone, its exit status will say so.
  (void)resume(thread, SourceResume{.step = false, .syscalls = how_.syscalls, .signal = 0});
  return StopVerdict::kResumed;
}

void StepSource::push(const decoder::Record& record) {
  if (record.kind == decoder::kPinRecord) {
    // During a step, at most one record is ahead.
    pins_.push_back(record);
    if (record.payload == 0) tell_pins();
    return;
  }
  pending_.push_back(record);
  ++records_;
  if (!pins_.empty()) tell_pins();
  if (pending_.size() >= kBatchRecords) flush();
}

void StepSource::pin(std::uint64_t id, std::uint32_t ahead) {
  push(decoder::pin_record(id, ahead));
}

void StepSource::tell_pins() {
  StepSource::flush();
  for (const decoder::Record& pin : std::exchange(pins_, {})) {
    sink_.consume_mark(decoder::pin_mark(pin));
  }
}

void StepSource::retire(TraceeAddr now) {
  const TraceeAddr from = *pc_;
  pc_ = now;
  if (ran_vsyscall(from, now)) return;
  if (!insn_.known()) {
    if (now != from) push(decoder::gap(decoder::GapReason::kUndecodable, from, now));
    return;
  }
  const TraceeAddr next = from + insn_.length;
  // A REP iteration, or no progress.
  if (now == from && !(insn_.is_branch() && insn_.target == from)) return;
  ++instructions_;
  if (now == next && (!insn_.is_branch() || returns_behind_itself(insn_.kind))) return;
  if (explains(insn_, now)) {
    push(decoder::branch(from, now));
  } else if (!ran_along(from, next, now)) {
    process_.restartable.suspect(from);
    push(decoder::gap(decoder::GapReason::kNotRecorded, from, now));
  }
}

bool StepSource::ran_along(TraceeAddr first, TraceeAddr second, TraceeAddr now) {
  constexpr std::array<std::uint8_t, 2> kCpuid{0x0f, 0xa2};
  std::array<std::uint8_t, kCpuid.size()> bytes{};
  if (process_.read_code(first, bytes) != bytes.size() || bytes != kCpuid) return false;
  const auto way = way_from(second, now);
  if (way) add_second(second, now, *way);
  return way.has_value();
}

bool StepSource::at_vsyscall() const {
  return process_.isa() == arch::Isa::kAmd64 && *pc_ >= kVsyscallPage &&
         *pc_ - kVsyscallPage < kPageBytes;
}

std::optional<TraceeAddr> StepSource::return_address(Thread& thread) {
  const auto regs = thread.user_regs();
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  if (!regs || process_.read_memory(regs->sp(), bytes) != bytes.size()) return std::nullopt;
  return TraceeAddr{load_le<std::uint64_t>(bytes, 0)};
}

bool StepSource::ran_vsyscall(TraceeAddr from, TraceeAddr now) {
  const auto second = std::exchange(vsyscall_returns_to_, std::nullopt);
  if (!second || now == from || now == *second) return false;
  const auto way = way_from(*second, now);
  if (!way) return false;
  push(decoder::gap(decoder::GapReason::kUndecodable, from, *second));
  add_second(*second, now, *way);
  return true;
}

std::optional<StepSource::Way> StepSource::way_from(TraceeAddr insn, TraceeAddr now) {
  const arch::InsnFacts& facts = process_.insns().at(insn);
  const bool conditional = facts.kind == InsnKind::kConditionalJump;
  if (!facts.known() || (returns_behind_itself(facts.kind) && !conditional)) return std::nullopt;
  if (now == insn + facts.length && (conditional || !facts.is_branch())) return Way::kFallsThrough;
  return explains(facts, now) ? std::optional{Way::kBranches} : std::nullopt;
}

void StepSource::add_second(TraceeAddr insn, TraceeAddr now, Way way) {
  ++instructions_;
  if (way == Way::kBranches) push(decoder::branch(insn, now));
}

void StepSource::handler_entered(Thread& thread, TraceeAddr handler) {
  delivering_ = false;
  show_own_mask(thread);
  // An interrupted system call was either finished (EINTR) or will be repeated: the frame says
  // where the handler returns to.
  const TraceeAddr next = *pc_ + insn_.length;
  std::optional<TraceeAddr> from = thread.trap_flag().handler_returns_to();
  if (!from) {
    if (const auto saved = saved_pc(thread, process_, *pc_, next)) from = saved->pc;
  }
  push(decoder::async_transfer(from.value_or(*pc_), handler));
  pc_ = handler;
}

void StepSource::account_other_stop(Thread& thread, const WaitStatus& status, TraceeAddr now) {
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    push(decoder::gap(decoder::GapReason::kExec, TraceeAddr{}, now));
    flush();
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
  // A request to stop may be reported before the step's own trap.
  if (status.is_event(PTRACE_EVENT_STOP)) clear_trap_flag_leak(thread);
}

void StepSource::clear_trap_flag_leak(Thread& thread) {
  // The program can see the trap flag in flags that it pushed, and in r11 after SYSCALL (SDM vol.
  // 2, "SYSCALL": RFLAGS is saved into R11).
  const bool syscall = insn_.kind == InsnKind::kSystemCall && process_.isa() == arch::Isa::kAmd64;
  if (!insn_.pushes_flags && !syscall) return;
  auto regs = thread.user_regs();
  if (!regs) return;
  if (syscall) {
    // After rt_sigreturn both registers have the program's own values.
    const std::uint64_t flags = (*regs)[UserReg::kEflags] | kTrapFlag;
    if ((*regs)[UserReg::kR11] != flags || (*regs)[UserReg::kRcx] != regs->pc().value()) return;
    (*regs)[UserReg::kR11] &= ~kTrapFlag;
    (void)thread.set_user_regs(*regs);
    return;
  }
  if (thread.trap_flag().is_set()) return;
  std::array<std::uint8_t, 1> byte{};
  const TraceeAddr image = regs->sp() + 1;
  if (process_.read_memory(image, byte) != 1) return;
  byte[0] &= static_cast<std::uint8_t>(~(kTrapFlag >> 8));
  (void)process_.write_data(image, byte);
}

void StepSource::on_pc_written(TraceeAddr from, TraceeAddr to) {
  if (!pc_ || from == to) return;
  push(decoder::gap(decoder::GapReason::kPcChanged, from, to));
  pc_ = to;
}

void StepSource::on_code_written(TraceeAddr, TraceeAddr) {
  flush();
}

void StepSource::flush() {
  if (pending_.empty()) return;
  // A consumer may read code and thereby call flush() again.
  std::vector<decoder::Record> batch;
  batch.swap(pending_);
  sink_.consume(batch);
  if (pending_.empty()) {
    batch.clear();
    pending_.swap(batch);
  }
}

void StepSource::forget() {
  pending_.clear();
}

void StepSource::detach(Thread& thread) {
  slice_.end(thread);
  TrapGuard::repair_from_any_stop(thread);
  // The program's action for SIGTRAP is unknown once it has run untraced.
  if (!process_.trap_action.damaged) process_.trap_action = {};
  flush();
}

void StepSource::add_to(SourceStatistics& sums) const {
  sums.instructions += instructions_;
  sums.stepped += instructions_;
}

std::string StepSource::statistics() const {
  return fmt::format("step: {} instructions, {} records", instructions_, records_);
}

}  // namespace backtrail::tracee
