#pragma once
/// @file
/// The `step` source: one PTRACE_SINGLESTEP an instruction. Works everywhere ptrace works; the
/// oracle for every other source.

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arch/insn.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/signal_slice.hpp"
#include "ptrace/tracee/restartable_sections.hpp"

namespace backtrail::tracee {

class Process;

/// Follows the pc from stop to stop. What lies between two stops is one instruction, whose bytes
/// are read and compared every time, so code that changes is seen.
class StepSource : public BranchSource {
 public:
  /// `sink` gets the records; borrowed, outlives the source. Nothing is known of the thread's
  /// position before its first stop.
  StepSource(Process& process, decoder::TraceConsumer& sink);
  /// The last records of a thread that has ended reach the sink, too.
  ~StepSource() override { StepSource::flush(); }
  StepSource(const StepSource&) = delete;
  StepSource& operator=(const StepSource&) = delete;

  [[nodiscard]] SourceKind kind() const override { return SourceKind::kStep; }
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

  /// The thread is stopped at `pc` and recorded from here on.
  void start_at(TraceeAddr pc);

 protected:
  /// Takes one record; sources built on this one keep it elsewhere.
  virtual void push(const decoder::Record& record);
  /// The thread is at `pc` without this source having seen how.
  void moved_to(TraceeAddr pc) { pc_ = pc; }
  [[nodiscard]] std::uint64_t instructions_stepped() const { return instructions_; }
  /// The thread has run natively, and may have made system calls.
  virtual void ran_unseen() {}
  /// Where the kernel and the thread talk about restartable sequences.
  [[nodiscard]] std::optional<TraceeAddr> rseq_area(Thread& thread);
  /// The same without asking the kernel, which the thread would have to stop for.
  [[nodiscard]] bool rseq_area_known() const { return rseq_area_.has_value(); }
  void note_resumed(const SourceResume& how) { how_ = how; }
  [[nodiscard]] SignalSlice& slice() { return slice_; }
  /// As the engine last resumed it, the signal aside.
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
  /// The restartable sequence that begins behind the instruction at pc_.
  const RestartableSection* section_ahead(Thread& thread);
  Result<void> run_section(Thread& thread, const RestartableSection& section);
  StopVerdict section_stop(Thread& thread, const WaitStatus& status);
  void forget_area_before_rseq(Thread& thread);
  void account_section(const RestartableSection& section, TraceeAddr now);

  /// Facts of the instruction at pc_, its bytes checked against memory.
  const arch::InsnFacts& fetch();
  /// One instruction, the one at pc_, was executed and control is at `now`.
  void retire(TraceeAddr now);
  /// Hypervisors that make CPUID themselves may let the instruction behind it run before the step
  /// traps (PVM does, seen with Linux 6.18). Whether that is what happened; it is recorded then.
  bool ran_along(TraceeAddr first, TraceeAddr second, TraceeAddr now);
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
  std::unordered_map<TraceeAddr, Seen> seen_;
  std::vector<decoder::Record> pending_;
  std::vector<decoder::Record> pins_;  ///< Behind the next record.
  std::optional<TraceeAddr> pc_;       ///< Next instruction to account for.
  arch::InsnFacts insn_;               ///< Facts of the instruction at pc_ when it was resumed.
  SourceResume how_;
  bool delivering_ = false;
  std::optional<bool> overtaken_own_;          ///< What a trap is that a request to stop overtook.
  std::optional<RestartableSection> section_;  ///< Is being run.
  TraceeAddr section_from_;
  std::optional<TraceeAddr> rseq_area_;  ///< 0: it has none.
  TrapGuard guard_;
  SignalSlice slice_;
  /// The system call that is stepped over, where it matters to signals.
  struct SignalCall {
    std::uint64_t number = 0;
    std::uint64_t how = 0;
    std::optional<std::uint64_t> set;  ///< Of rt_sigprocmask.
    TraceeAddr shown_at;               ///< Where the program is shown signals; 0: nowhere.
  };
  std::optional<SignalCall> signal_call_;
  std::uint64_t instructions_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace backtrail::tracee
