#pragma once
/// @file
/// Branch stacks (LBR and its kin) to records: each sample holds the last N branches, and samples
/// may overlap.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/perf/branch_assembler.hpp"
#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder::perf {

class StackJoiner {
 public:
  explicit StackJoiner(BranchAssembler& out) : out_{out} {}

  /// A sample's entries, newest first, as the kernel has them. What was not there before is handed
  /// on, behind a gap where the stacks have nothing in common. Entries of a wrong path, with an end
  /// in the kernel or with an end that is not told are no branches of the program.
  void take(std::span<const std::uint8_t> branches);
  /// Samples are missing: the next stack joins nothing.
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
