// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The `step` source: every instruction is stepped. Works wherever ptrace works; the oracle for
/// every other source.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/record_batch.hpp"
#include "ptrace/source/step_facts.hpp"
#include "ptrace/source/stepper.hpp"

namespace backtrail::tracee {

class StepSource final : public BranchSource, private StepperUser {
 public:
  /// `sink` gets the records; borrowed, must outlive the source. `calls` as of Stepper.
  StepSource(Process& process, decoder::TraceConsumer& sink, std::unique_ptr<CallWatch> calls);

  [[nodiscard]] SourceKind kind() const override { return SourceKind::kStep; }
  [[nodiscard]] bool sees_calls() const override { return true; }
  /// Begins recording of the thread, which is stopped at `pc`.
  void start_at(TraceeAddr pc) { stepper_.start_at(pc); }
  Result<void> resume(Thread& thread, const SourceResume& how) override;
  StopVerdict on_stop(Thread& thread, const WaitStatus& status) override;
  void on_pc_written(TraceeAddr from, TraceeAddr to) override;
  void on_code_written(TraceeAddr begin, TraceeAddr end) override;
  [[nodiscard]] std::optional<SignalSlice::Clock::time_point> stop_due() const override;
  [[nodiscard]] std::uint64_t held_signals() const override;
  void pin(std::uint64_t id, std::uint32_t ahead) override;
  void flush() override;
  void forget() override;
  void detach(Thread& thread) override;
  void add_to(SourceStatistics& sums) const override;
  [[nodiscard]] std::string statistics() const override;

 private:
  void push(const decoder::Record& record) override;
  void executed(TraceeAddr pc, const decoder::ExecutedInsn& insn) override {
    facts_.executed(pc, insn);
  }
  void flush_records() override { batch_.flush(); }
  void go_on(Thread& thread, const SourceResume& how) override;

  RecordBatch batch_;
  Stepper stepper_;
  StepFacts facts_;
};

}  // namespace backtrail::tracee
