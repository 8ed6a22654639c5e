#pragma once
/// @file
/// What the exit numbers in a log mean.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"

namespace backtrail::decoder {

using TakenBranch = std::pair<TraceeAddr, TraceeAddr>;

/// A taken branch, counted from the head of its superblock.
struct NearBranch {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// A superblock: where it begins, and which branches are taken inside it.
struct LoggedBlock {
  TraceeAddr head;
  std::uint32_t first_branch = 0;  ///< Among all.
  std::uint32_t branches = 0;
};

enum class LoggedExitKind : std::uint8_t {
  kDirect,    ///< A taken branch from `from` to `to`.
  kIndirect,  ///< A taken branch from `from` to wherever the thread was next.
  kContinue,  ///< No branch.
};

/// An exit as tables hold it: there are hundreds of thousands of them.
struct PackedExit {
  std::int32_t from = 0;  ///< Counted from the superblock's head.
  std::int32_t to = 0;
  std::uint32_t block_and_kind = 0;

  [[nodiscard]] std::uint32_t block() const { return block_and_kind >> kKindBits; }
  [[nodiscard]] LoggedExitKind kind() const {
    return static_cast<LoggedExitKind>(block_and_kind & kKindMask);
  }
  static constexpr std::uint32_t kKindBits = 2;
  static constexpr std::uint32_t kKindMask = 3;
};

/// What counts of an exit, apart from the rest, so that counting stays in the CPU's cache.
struct ExitWeight {
  std::uint16_t branches = 0;      ///< Taken since the superblock's head, that of the exit too.
  std::uint16_t instructions = 0;  ///< Since the head, the branching one included.
};

/// A superblock as it is looked at.
struct BlockView {
  TraceeAddr head;
  std::span<const NearBranch> branches;

  [[nodiscard]] TraceeAddr at(std::int32_t distance) const {
    return head + static_cast<std::uint64_t>(std::int64_t{distance});
  }
  [[nodiscard]] TakenBranch branch(std::size_t index) const {
    return {at(branches[index].from), at(branches[index].to)};
  }
};

struct LoggedExit {
  BlockView block;  ///< With the branches that were taken before the exit.
  std::uint32_t block_number = 0;
  TraceeAddr from{};
  TraceeAddr to{};
  LoggedExitKind kind = LoggedExitKind::kDirect;
  std::uint16_t executed = 0;
};

/// An exit to be added. Addresses of 0 stand for none.
struct NewExit {
  std::uint32_t block = 0;
  TraceeAddr from;
  TraceeAddr to;
  std::uint16_t passed = 0;  ///< How many of the block's branches were taken before it.
  LoggedExitKind kind = LoggedExitKind::kDirect;
  std::uint16_t executed = 0;
};

/// Sums over logged numbers.
struct LogCounts {
  std::uint64_t branches = 0;
  std::uint64_t instructions = 0;
};

/// Grows only: a number means the same for ever.
class ExitTable {
 public:
  /// Exits that are there already, wherever they are, with their superblocks.
  struct Base {
    std::span<const LoggedBlock> blocks;
    std::span<const NearBranch> branches;
    std::span<const PackedExit> exits;
    std::span<const ExitWeight> weights;
    std::shared_ptr<const void> owner;
  };
  ExitTable() = default;
  /// Numbers go on behind those of the base.
  explicit ExitTable(Base base) : base_{std::move(base)} {}
  /// Nothing in there leads out of it. Distances are anybody's.
  [[nodiscard]] static bool is_consistent(const Base& base);

  /// The number that the next exit will get.
  [[nodiscard]] std::uint32_t next_number() const {
    return static_cast<std::uint32_t>(base_.exits.size() + exits_.size());
  }
  /// Returns the superblock's number. The branches are less than 2 GiB from the head.
  std::uint32_t add_block(TraceeAddr head, std::span<const TakenBranch> branches);
  /// `from` is as near.
  void add_exit(const NewExit& exit);
  /// Nothing for a number that no exit has.
  [[nodiscard]] std::optional<LoggedExit> find(std::uint32_t number) const;
  /// What find() says of its target. The exit is there.
  [[nodiscard]] TraceeAddr target(std::uint32_t number) const;
  [[nodiscard]] BlockView block(std::uint32_t number) const;
  void count(std::span<const std::uint32_t> numbers, LogCounts& counts);
  /// What count() would add of branches; a table of its own is not made for it.
  [[nodiscard]] std::uint64_t branches_of(std::span<const std::uint32_t> numbers) const;

  [[nodiscard]] const Base& base() const { return base_; }
  /// What was added. Nothing when some of it has no place there: targets that are too far.
  template <typename Use>
  bool with_added(Use use) const {
    if (!far_.empty()) return false;
    use(blocks_.pieces(), branches_.pieces(), exits_.pieces(), std::span{weights_});
    return true;
  }

 private:
  void weigh_all();
  [[nodiscard]] const LoggedBlock& logged(std::uint32_t number) const {
    const std::size_t before = base_.blocks.size();
    return number < before ? base_.blocks[number] : blocks_[number - before];
  }

  Base base_;
  ChunkedArray<LoggedBlock> blocks_;
  ChunkedArray<NearBranch> branches_;
  ChunkedArray<PackedExit> exits_;
  std::vector<ExitWeight> weights_;
  /// Weights of all, when somebody counts: instructions in the upper half.
  std::vector<std::uint64_t> counted_;
  std::map<std::uint32_t, TraceeAddr> far_;  ///< Targets that PackedExit has no room for.
};

}  // namespace backtrail::decoder
