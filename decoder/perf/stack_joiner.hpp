// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Turns branch stacks (LBR and similar) into records. Each sample has the last N branches, and
/// samples may overlap.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/perf/branch_assembler.hpp"
#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

class StackJoiner {
 public:
  explicit StackJoiner(BranchAssembler& out) : out_{out} {}

  /// Takes a sample's entries, newest first. Passes on those that are not in the previous stack,
  /// after a gap if the stacks do not overlap. Skips entries on a wrong path, and those with an end
  /// in the kernel or unknown.
  void take(std::span<const std::uint8_t> branches);
  /// Reports missing samples: the next stack follows a gap.
  void lost() { last_.clear(), broken_ = true; }

 private:
  struct Pair {
    std::uint64_t from;
    std::uint64_t to;
    bool operator==(const Pair&) const = default;
  };
  [[nodiscard]] std::size_t common(std::span<const Pair> now) const;

  BranchAssembler& out_;
  std::vector<Pair> last_;  ///< Oldest first.
  bool broken_ = false;
};

}  // namespace backtrail::decoder::perf
