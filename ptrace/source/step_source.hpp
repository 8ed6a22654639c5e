// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The `step` source: one PTRACE_SINGLESTEP per instruction. Works wherever ptrace works; the
/// oracle for every other source.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arch/insn.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/call_watch.hpp"
#include "ptrace/source/signal_slice.hpp"
#include "ptrace/tracee/restartable_sections.hpp"

namespace backtrail::tracee {

class Process;

/// Follows the pc from stop to stop. One instruction lies between two stops; its bytes are read and
/// compared every time, so changed code is noticed.
class StepSource : public BranchSource {
 public:
  /// `sink` gets the records; borrowed, must outlive the source. `calls` sees the system calls that
  /// the thread makes while it is stepped. The thread's position is unknown until its first stop.
  StepSource(Process& process, decoder::TraceConsumer& sink, std::unique_ptr<CallWatch> calls);
  /// Hands on the last records of a thread that has ended.
  ~StepSource() override { StepSource::flush(); }
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;

  [[nodiscard]] SourceKind kind() const override { return SourceKind::kStep; }
  [[nodiscard]] bool sees_calls() const override { return true; }
  Result<void> resume(Thread& thread, const SourceResume& how) override;
  StopVerdict on_stop(Thread& thread, const WaitStatus& status) override;
  void on_pc_written(TraceeAddr from, TraceeAddr to) override;
  void on_code_written(TraceeAddr begin, TraceeAddr end) override;
  [[nodiscard]] std::optional<SignalSlice::Clock::time_point> stop_due() const override;
  [[nodiscard]] std::uint64_t held_signals() const override { return slice_.held(); }
  void pin(std::uint64_t id, std::uint32_t ahead) override;
  void flush() override;
  void forget() override;
  void detach(Thread& thread) override;
  void add_to(SourceStatistics& sums) const override;
  [[nodiscard]] std::string statistics() const override;

  /// Begins recording of the thread, which is stopped at `pc`.
  void start_at(TraceeAddr pc);

 protected:
  /// Takes one record. Derived sources store it elsewhere.
  virtual void push(const decoder::Record& record);
  /// Sets the position without recording how the thread got there.
  void moved_to(TraceeAddr pc) { pc_ = pc; }
  [[nodiscard]] std::uint64_t instructions_stepped() const { return instructions_; }
  /// Called when the thread has run natively, so that it may have made system calls.
  virtual void ran_unseen() {}
  /// Returns the address of the thread's struct rseq, 0 if it has none; nullopt if unknown.
  [[nodiscard]] std::optional<TraceeAddr> rseq_area(Thread& thread);
  /// Returns true if rseq_area() can answer without asking the kernel, for which the thread must be
  /// stopped.
  [[nodiscard]] bool rseq_area_known() const { return rseq_area_.has_value(); }
  void note_resumed(const SourceResume& how) { how_ = how; }
  /// Call at a stop of the thread, as early as possible. Further calls have no effect.
  void end_call(Thread& thread) { calls_->end(thread); }
  [[nodiscard]] SignalSlice& slice() { return slice_; }
  /// Returns how the engine last resumed the thread, without the signal.
  [[nodiscard]] SourceResume last_resume() const {
    return {.step = how_.step, .syscalls = how_.syscalls, .signal = 0};
  }

 private:
  struct Seen {
    std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
    std::uint8_t available = 0;
    arch::InsnFacts facts;
  };

  StopVerdict stepped(Thread& thread, const WaitStatus& status);
  // step_source_sections.cpp
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
  // step_source_signals.cpp
  void note_signals(Thread& thread, const SourceResume& how);
  void end_slice(Thread& thread);
  void show_own_mask(Thread& thread);
  void begin_signal_call(Thread& thread);
  void end_signal_call(Thread& thread);
  void handler_returned(Thread& thread);
  void handler_entered(Thread& thread, TraceeAddr handler);
  void account_other_stop(Thread& thread, const WaitStatus& status, TraceeAddr now);
  void clear_trap_flag_leak(Thread& thread);
  void tell_pins();

  Process& process_;
  decoder::TraceConsumer& sink_;
  std::unique_ptr<CallWatch> calls_;
  std::unordered_map<TraceeAddr, Seen> seen_;
  std::vector<decoder::Record> pending_;
  std::vector<decoder::Record> pins_;  ///< Pins to be told after the next record.
  std::optional<TraceeAddr> pc_;       ///< Next instruction to account for.
  arch::InsnFacts insn_;               ///< The instruction at pc_ when the thread was resumed.
  std::optional<TraceeAddr> vsyscall_returns_to_;  ///< Nullopt if pc_ is not in the vsyscall page.
  SourceResume how_;
  bool delivering_ = false;
  std::optional<bool> overtaken_own_;          ///< Cause of a trap that a request to stop overtook.
  std::optional<RestartableSection> section_;  ///< The section being run.
  TraceeAddr section_from_;
  std::optional<TraceeAddr> rseq_area_;  ///< 0: the thread has none.
  TrapGuard guard_;
  SignalSlice slice_;
  /// The system call being stepped over, if it concerns signals.
  struct SignalCall {
    std::uint64_t number = 0;
    std::uint64_t how = 0;
    std::optional<std::uint64_t> set;  ///< Argument of rt_sigprocmask.
    TraceeAddr shown_at;  ///< Address at which the call shows signals to the program; 0: none.
  };
  std::optional<SignalCall> signal_call_;
  std::uint64_t instructions_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace backtrail::tracee
