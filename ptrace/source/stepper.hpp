// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records a thread by stepping it: one PTRACE_SINGLESTEP per instruction.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "arch/insn.hpp"
#include "decoder/trace/executed_insn.hpp"
#include "decoder/trace/record.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/call_watch.hpp"
#include "ptrace/source/stepped_signals.hpp"
#include "ptrace/tracee/restartable_sections.hpp"

namespace backtrail::tracee {

class Process;

/// The source that a stepper works for.
class StepperUser {
 public:
  StepperUser() = default;
  StepperUser(const StepperUser&) = delete;
  StepperUser& operator=(const StepperUser&) = delete;
  virtual ~StepperUser() = default;
  /// Takes one record.
  virtual void push(const decoder::Record& record) = 0;
  /// Takes an instruction that was executed, before its record.
  virtual void executed(TraceeAddr pc, const decoder::ExecutedInsn& insn) {
    (void)pc;
    (void)insn;
  }
  /// Hands on all records, because code that consumers have yet to look at changes.
  virtual void flush_records() = 0;
  /// Resumes the thread after a step that was not its last.
  virtual void go_on(Thread& thread, const SourceResume& how) = 0;
  /// Called when the thread has run natively, so that it may have made system calls.
  virtual void ran_unseen() {}
};

/// Follows the pc from stop to stop. One instruction lies between two stops; its bytes are read and
/// compared every time, so changed code is noticed. rseq critical sections run at full speed, from
/// before their first instruction to an exit.
class Stepper {
 public:
  /// Borrows `process` and `user`. `calls` sees the system calls that the thread makes while it is
  /// stepped. The thread's position is unknown until its first stop.
  Stepper(Process& process, StepperUser& user, std::unique_ptr<CallWatch> calls);

  /// Begins recording of the thread, which is stopped at `pc`.
  void start_at(TraceeAddr pc);
  /// Executes one instruction. Errors: kTraceeGone.
  Result<void> resume(Thread& thread, const SourceResume& how);
  /// Handles a stop after resume().
  StopVerdict on_stop(Thread& thread, const WaitStatus& status);
  /// The debugger moved the pc.
  void pc_written(TraceeAddr from, TraceeAddr to);
  /// Sets the position without recording how the thread got there.
  void moved_to(TraceeAddr pc) { pc_ = pc; }
  /// Restores what was changed of the thread, which runs natively afterwards.
  void detach(Thread& thread);
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }

  /// Returns the address of the thread's struct rseq, 0 if it has none; nullopt if unknown.
  [[nodiscard]] std::optional<TraceeAddr> rseq_area(Thread& thread);
  /// Returns true if rseq_area() can answer without asking the kernel, for which the thread must be
  /// stopped.
  [[nodiscard]] bool rseq_area_known() const { return rseq_area_.has_value(); }
  void note_resumed(const SourceResume& how) { how_ = how; }
  /// Returns how the engine last resumed the thread, without the signal.
  [[nodiscard]] SourceResume last_resume() const {
    return {.step = how_.step, .syscalls = how_.syscalls, .signal = 0};
  }
  /// Call at a stop of the thread, as early as possible. Further calls have no effect.
  void end_call(Thread& thread) { calls_->end(thread); }
  [[nodiscard]] CallWatch& calls() { return *calls_; }
  [[nodiscard]] SteppedSignals& signals() { return signals_; }
  [[nodiscard]] const SteppedSignals& signals() const { return signals_; }

 private:
  struct Seen {
    std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
    std::uint8_t available = 0;
    arch::InsnFacts facts;
  };

  StopVerdict stepped(Thread& thread, const WaitStatus& status);
  /// Returns the rseq critical section that begins after the instruction at pc_; null if none does.
  const RestartableSection* section_ahead(Thread& thread);
  Result<void> run_section(Thread& thread, const RestartableSection& section);
  StopVerdict section_stop(Thread& thread, const WaitStatus& status);
  void forget_area_before_rseq(Thread& thread);
  void account_section(const RestartableSection& section, TraceeAddr now);

  /// Decodes the instruction at pc_, after comparing its bytes with memory.
  const arch::InsnFacts& fetch();
  /// Accounts for the instruction at pc_: it was executed, and control is at `now`.
  void retire(TraceeAddr now);
  /// Returns true if a second instruction ran in one step, and records it. Hypervisors that emulate
  /// CPUID may let the instruction after it run before the step traps (PVM does, seen with Linux
  /// 6.18).
  bool ran_along(TraceeAddr first, TraceeAddr second, TraceeAddr now);
  /// The kernel runs calls of the vsyscall page itself; what can be read there, if anything, is not
  /// what runs. The step traps only after the instruction to which the call returned.
  [[nodiscard]] bool at_vsyscall() const;
  std::optional<TraceeAddr> return_address(Thread& thread);
  bool ran_vsyscall(TraceeAddr from, TraceeAddr now);
  enum class Way : std::uint8_t { kFallsThrough, kBranches };
  /// Returns how the instruction led to `now`; nullopt if it cannot have.
  std::optional<Way> way_from(TraceeAddr insn, TraceeAddr now);
  /// Accounts for an instruction that ran within the step of the one before it.
  void add_second(TraceeAddr insn, TraceeAddr now, Way way);
  void handler_entered(Thread& thread, TraceeAddr handler);
  void account_other_stop(Thread& thread, const WaitStatus& status, TraceeAddr now);

  Process& process_;
  StepperUser& user_;
  std::unique_ptr<CallWatch> calls_;
  std::unordered_map<TraceeAddr, Seen> seen_;
  std::optional<TraceeAddr> pc_;                   ///< Next instruction to account for.
  arch::InsnFacts insn_;                           ///< The one at pc_ when the thread was resumed.
  std::optional<TraceeAddr> vsyscall_returns_to_;  ///< Nullopt if pc_ is not in the vsyscall page.
  SourceResume how_;
  bool delivering_ = false;
  std::optional<bool> overtaken_own_;          ///< Cause of a trap that a request to stop overtook.
  std::optional<RestartableSection> section_;  ///< The section being run.
  TraceeAddr section_from_;
  std::optional<TraceeAddr> rseq_area_;  ///< 0: the thread has none.
  TrapGuard guard_;
  SteppedSignals signals_;
  std::uint64_t instructions_ = 0;
};

}  // namespace backtrail::tracee
