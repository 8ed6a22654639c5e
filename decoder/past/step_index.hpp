#pragma once
/// @file
/// The newest instructions of a timeline by number, for what works on windows of them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "decoder/past/timeline.hpp"
#include "decoder/values/window.hpp"

namespace backtrail::decoder {

class StepIndex {
 public:
  /// Numbers the last instructions of `timeline` (borrowed), at most `most`; oldest first.
  StepIndex(Timeline& timeline, RecordSequence& records, std::size_t most);

  /// How many there are.
  [[nodiscard]] std::size_t steps() const { return steps_; }
  /// The number of the instruction at `place`; steps() at the newest place. nullopt: too far back.
  [[nodiscard]] std::optional<std::size_t> number(const PastPosition& place) const;
  /// The steps [begin, end), and what happened between them. Step `end` - 1 is followed by the
  /// instruction `end`, or by the thread's own pc.
  [[nodiscard]] values::Window window(std::size_t begin, std::size_t end);

 private:
  [[nodiscard]] std::size_t first_of(std::uint64_t block) const;
  void add_block(std::uint64_t block, std::size_t begin, std::size_t end, values::Window& out);
  [[nodiscard]] TraceeAddr pc_of(std::size_t step);

  Timeline& timeline_;
  RecordSequence& records_;
  std::uint64_t newest_;  ///< Number of the newest block.
  std::size_t steps_ = 0;
  /// For each block, newest first, how many steps there are from its first one to the end.
  std::vector<std::size_t> from_end_;
};

}  // namespace backtrail::decoder
