// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers the newest instructions of a timeline, for code that works on windows of them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/past/timeline.hpp"
#include "decoder/trace/value_fact.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder {

class StepIndex {
 public:
  /// Numbers the last instructions of `timeline` (borrowed), `most` at most; the oldest gets 0.
  /// @param changed  A place at which something other than the program changed its state: windows
  ///                 have a gap there.
  /// @param facts    Values that were recorded, sorted by record and numbered as `records`; the
  ///                 timeline has those of code and memory.
  StepIndex(Timeline& timeline, RecordSequence& records, std::size_t most,
            const std::optional<PastPosition>& changed = std::nullopt,
            std::vector<ValueFact> facts = {});

  /// Returns how many instructions are numbered.
  [[nodiscard]] std::size_t steps() const { return steps_; }
  /// Returns the number of the instruction at `place`; steps() for the newest place. nullopt if it
  /// is too far back.
  [[nodiscard]] std::optional<std::size_t> number(const PastPosition& place) const;
  /// Returns the place of the instruction `step`, or the newest place for steps().
  [[nodiscard]] PastPosition place(std::size_t step);
  /// Returns the steps [begin, end) and the events between them. Step `end` - 1 is followed by
  /// instruction `end`, or by the thread's own pc.
  [[nodiscard]] values::Window window(std::size_t begin, std::size_t end);

 private:
  [[nodiscard]] std::size_t first_of(std::uint64_t block) const;
  void add_block(std::uint64_t block, std::size_t begin, std::size_t end, values::Window& out);

  void add_facts(std::uint64_t block, std::size_t begin, std::size_t end, values::Window& out);
  /// Adds the facts of `block` that were recorded where the signal interrupted it that the block
  /// after it begins with. The signal is the newest event of `out`.
  void add_interrupted_facts(std::uint64_t block, TraceeAddr interrupted, values::Window& out);

  Timeline& timeline_;
  RecordSequence& records_;
  std::vector<ValueFact> facts_;
  std::uint64_t newest_;  ///< Number of the newest block.
  std::size_t steps_ = 0;
  /// For each block, newest first: the number of steps from its first one to the end.
  std::vector<std::size_t> from_end_;
  std::optional<std::size_t> changed_;  ///< Number of the instruction after the change.
};

}  // namespace backtrail::decoder
