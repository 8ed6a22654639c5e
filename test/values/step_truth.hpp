// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The truth about a run: a real program is single-stepped to its end, and all registers and much
/// of memory are kept at each step.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/xsave_layout.hpp"
#include "decoder/trace/code_reader.hpp"
#include "decoder/values/value_history.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder::values {

/// Bytes of memory at one position.
struct MemorySample {
  std::uint32_t position = 0;
  std::uint32_t size = 0;
  std::uint64_t address = 0;
  std::size_t at = 0;       ///< Index into TruthRun::bytes_.
  bool is_operand = false;  ///< An operand of the instruction at this position; otherwise a sample.
};

struct TruthOptions {
  /// Number of steps kept, counted from the end.
  std::size_t most_steps = 110'000;
  /// Stops after that number of steps; 0 for the end of the program.
  std::size_t stop_after = 0;
  /// Runs freely to the first SIGTRAP and begins there.
  bool from_trap = false;
};

/// A single-stepped program. It stays alive at its end as long as this object.
class TruthRun final : public CodeReader, public EndState {
 public:
  TruthRun(const std::vector<std::string>& command, const TruthOptions& options);
  ~TruthRun() override;
  TruthRun(const TruthRun&) = delete;
  TruthRun& operator=(const TruthRun&) = delete;

  [[nodiscard]] bool ok() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  /// All steps have their code.
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// As a recorder gives them, steps of code in files have none.
  [[nodiscard]] Window window(std::size_t begin, std::size_t end) const;
  /// The values that windows have, of those that a recorder would record; at first none.
  enum class Recorded : std::uint8_t {
    kNothing,
    kRegisters,  ///< TranslateOptions::records_values
    kOldBytes,   ///< TranslateOptions::records_old_bytes, too
  };
  void set_recorded(Recorded what) { recorded_ = what; }
  /// Returns the true value of a register before a step; position steps().size() is the end.
  [[nodiscard]] std::uint64_t reg_at(std::size_t position, Slot slot) const;
  [[nodiscard]] const std::vector<MemorySample>& samples() const { return samples_; }
  [[nodiscard]] const std::uint8_t* bytes(const MemorySample& s) const { return &bytes_[s.at]; }

  // CodeReader
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;
  // EndState
  Known reg(Slot slot) override;
  PageKind page(TraceeAddr address) override;
  Known granule(TraceeAddr address) override;
  bool stable(TraceeAddr granule) override;
  bool all_is_private() override { return !shares_; }
  std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() override;

 private:
  struct General {
    std::array<std::uint64_t, 16> regs;
    std::uint64_t pc, flags, fs_base, gs_base;
    std::uint32_t vectors;  ///< Index into vectors_.
  };
  /// The slots from kFirstVectorSlot on.
  using Vectors = std::array<std::uint64_t, cpu::kSlotCount - cpu::kFirstVectorSlot>;
  struct Mapping {
    std::uint64_t begin, end;
    PageKind kind;
    bool heap = false;
    bool is_of_file = false;
  };
  enum class Stop : std::uint8_t { kStepped, kSignal, kLast, kGone };

  void start(const std::vector<std::string>& command, bool from_trap);
  void run(const TruthOptions& options);
  Stop step_once(int& signal);
  bool read_state(General& state);
  void sample_memory(const General& state);
  void add_sample(std::uint64_t address, std::size_t size, bool is_operand);
  void trim(std::size_t most);
  /// Returns the instruction that is in memory now; its length is 0 if there is none.
  const ExecutedInsn& code_at(std::uint64_t pc);
  void read_mappings();
  [[nodiscard]] const Mapping* mapping_of(TraceeAddr address) const;
  [[nodiscard]] bool is_of_file(TraceeAddr address) const;
  /// Adds what is recorded before a step and, of a system call, after it.
  void add_facts(std::size_t step, std::size_t begin, std::vector<Fact>& out) const;
  /// Adds what is recorded where the signals of a window are delivered. They are its events.
  void add_signal_facts(std::size_t begin, Window& out) const;
  void add_old_bytes(std::size_t step, const arch::x86::translate::SourceInsn& insn,
                     std::size_t begin, std::vector<Fact>& out) const;
  std::size_t peek(std::uint64_t address, void* out, std::size_t bytes) const;

  Recorded recorded_ = Recorded::kNothing;
  pid_t pid_ = 0;
  std::string error_;
  std::vector<Step> steps_;
  std::vector<Event> events_;
  std::vector<General> interrupted_;  ///< The state before each event.
  std::vector<General> states_;       ///< One more than steps_.
  std::vector<Vectors> vectors_;
  std::vector<MemorySample> samples_;
  std::vector<std::uint8_t> bytes_;
  std::vector<Mapping> mappings_;
  /// By address: what was executed there.
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<ExecutedInsn>>> code_;
  std::uint64_t rseq_ = 0;
  bool shares_ = false;  ///< There is a shared mapping that is writable.
};

/// Returns the history of the whole run, which it borrows: every value in it comes from the last
/// state and the steps.
[[nodiscard]] inline ValueHistory history_of(TruthRun& run, HistoryLimits limits) {
  const auto window = [&run](std::size_t begin, std::size_t end) { return run.window(begin, end); };
  return ValueHistory{
      run.steps().size(), window, run, run, arch::x86::host_xsave_layout().xcr0, limits};
}

}  // namespace backtrail::decoder::values
