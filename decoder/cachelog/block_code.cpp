// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/block_code.hpp"

#include "arch/insn.hpp"

namespace backtrail::decoder {
namespace {

/// Goes along the ranges of a superblock's path.
class Path {
 public:
  explicit Path(std::span<const TakenBranch> ranges) : ranges_{ranges} {}

  /// Takes a branch. Returns false if the path does not go there.
  bool take(const TakenBranch& branch) {
    const auto [from, to] = branch;
    // A branch to the next instruction begins no new range.
    const bool goes_on = to > from && to - from <= arch::kMaxInsnBytes && holds(to);
    if (!goes_on) {
      before_ += ranges_[range_].second - ranges_[range_].first;
      ++range_;
    }
    at_ = to;
    return range_ < ranges_.size() && holds(to);
  }
  [[nodiscard]] TraceeAddr at() const { return at_; }
  /// Returns the index of the byte at which the path is.
  [[nodiscard]] std::size_t index() const { return before_ + (at_ - ranges_[range_].first); }
  /// Returns the number of bytes up to the range's end.
  [[nodiscard]] std::size_t size() const { return ranges_[range_].second - at_; }

 private:
  [[nodiscard]] bool holds(TraceeAddr at) const {
    return at >= ranges_[range_].first && at < ranges_[range_].second;
  }
  std::span<const TakenBranch> ranges_;
  std::size_t range_ = 0;
  std::size_t before_ = 0;  ///< Bytes of the ranges before it.
  TraceeAddr at_ = ranges_.front().first;
};

}  // namespace

void BlockCode::add(std::uint32_t block, std::span<const TakenBranch> branches,
                    std::span<const TakenBranch> ranges, std::span<const std::uint8_t> bytes) {
  Kept& kept = blocks_[block];
  kept = {.first = segments_.size(), .count = 0};
  if (ranges.empty()) return;
  const std::size_t first = bytes_.append(bytes);
  Path path{ranges};
  do {
    segments_.push_back({path.at(), first + path.index(), path.size()});
    ++kept.count;
  } while (kept.count <= branches.size() && path.take(branches[kept.count - 1]));
}

std::optional<BlockCode::Segment> BlockCode::segment(std::uint32_t block,
                                                     std::size_t passed) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || passed >= found->second.count) return std::nullopt;
  const Place& place = segments_[found->second.first + passed];
  return Segment{place.begin, bytes_.piece(place.first, place.size)};
}

}  // namespace backtrail::decoder
