// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Maps exit ids in a log to exits.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"
#include "decoder/cachelog/block_code.hpp"
#include "decoder/cachelog/value_points.hpp"

namespace backtrail::decoder {

/// A taken branch, relative to the start pc of its superblock.
struct NearBranch {
  std::int32_t from = 0;
  std::int32_t to = 0;
};

/// A superblock: its start pc and the branches taken inside it.
struct LoggedBlock {
  TraceeAddr start;
  std::uint32_t first_branch = 0;  ///< Index into all branches.
  std::uint32_t branches = 0;
};

enum class LoggedExitKind : std::uint8_t {
  kDirect,    ///< A taken branch from `from` to `to`.
  kIndirect,  ///< A taken branch from `from` to the thread's next pc.
  kContinue,  ///< No branch.
};

/// An exit in the table, packed because there are hundreds of thousands.
struct PackedExit {
  std::int32_t from = 0;  ///< Relative to the superblock's start pc.
  std::int32_t to = 0;
  std::uint32_t block_and_kind = 0;

  [[nodiscard]] std::uint32_t block() const { return block_and_kind >> kKindBits; }
  [[nodiscard]] LoggedExitKind kind() const {
    return static_cast<LoggedExitKind>(block_and_kind & kKindMask);
  }
  static constexpr std::uint32_t kKindBits = 2;
  static constexpr std::uint32_t kKindMask = 3;
};

/// Counts of an exit, kept apart so that counting stays in the CPU's cache.
struct ExitWeight {
  std::uint16_t branches = 0;  ///< Branches taken since the start pc, including the exit's own.
  /// Instructions since the start pc, including the branching one.
  std::uint16_t instructions = 0;
};

/// A superblock with its branches.
struct BlockView {
  TraceeAddr start;
  std::span<const NearBranch> branches;

  [[nodiscard]] TraceeAddr at(std::int32_t distance) const {
    return start + static_cast<std::uint64_t>(std::int64_t{distance});
  }
  [[nodiscard]] TakenBranch branch(std::size_t index) const {
    return {at(branches[index].from), at(branches[index].to)};
  }
};

struct LoggedExit {
  BlockView block;  ///< With the branches taken before the exit.
  std::uint32_t block_number = 0;
  TraceeAddr from{};
  TraceeAddr to{};
  LoggedExitKind kind = LoggedExitKind::kDirect;
  std::uint16_t executed = 0;
};

/// An exit to add. Address 0 means none.
struct NewExit {
  std::uint32_t block = 0;
  TraceeAddr from;
  TraceeAddr to;
  std::uint16_t passed = 0;  ///< Number of the block's branches taken before it.
  LoggedExitKind kind = LoggedExitKind::kDirect;
  std::uint16_t executed = 0;
};

/// Sums over log entries.
struct LogCounts {
  std::uint64_t branches = 0;
  std::uint64_t instructions = 0;
  std::uint64_t values = 0;  ///< Recorded values (ValuePoints).
};

/// Grows only: an exit id never changes its meaning.
class ExitTable {
 public:
  /// Existing exits with their superblocks, in borrowed memory that `owner` keeps alive.
  struct Base {
    std::span<const LoggedBlock> blocks;
    std::span<const NearBranch> branches;
    std::span<const PackedExit> exits;
    std::span<const ExitWeight> weights;
    std::shared_ptr<const void> owner;
    ValuePoints::Base values = {};
  };
  ExitTable() = default;
  /// Continues the ids of `base`.
  explicit ExitTable(Base base) : base_{std::move(base)}, values_{base_.values} {}
  /// Returns true if no index leads out of the tables, and each superblock's values are of
  /// registers that exist, in order. Distances may have any value.
  [[nodiscard]] static bool is_consistent(const Base& base);

  /// Returns the id of the next exit to be added.
  [[nodiscard]] std::uint32_t next_exit_id() const {
    return static_cast<std::uint32_t>(base_.exits.size() + exits_.size());
  }
  /// Adds a superblock and returns its number. The branches must be less than 2 GiB from `start`.
  std::uint32_t add_block(TraceeAddr start, std::span<const TakenBranch> branches);
  /// Adds an exit. `from` must be less than 2 GiB from the superblock's start pc.
  void add_exit(const NewExit& exit);
  /// Returns the exit; nullopt if there is none with that id.
  [[nodiscard]] std::optional<LoggedExit> find(std::uint32_t exit_id) const;
  /// Returns find(number)->to. The exit must exist.
  [[nodiscard]] TraceeAddr target(std::uint32_t exit_id) const;
  [[nodiscard]] BlockView block(std::uint32_t exit_id) const;
  void count(std::span<const std::uint32_t> exit_ids, LogCounts& counts);
  /// Returns the branches that count() would add, without building its table.
  [[nodiscard]] std::uint64_t branches_of(std::span<const std::uint32_t> exit_ids) const;

  /// The values that the superblocks record; empty unless values are recorded.
  [[nodiscard]] ValuePoints& values() { return values_; }
  [[nodiscard]] const ValuePoints& values() const { return values_; }

  /// The code that superblocks were made of, of those that were made of code that may change.
  [[nodiscard]] BlockCode& code() { return code_; }
  [[nodiscard]] const BlockCode& code() const { return code_; }

  [[nodiscard]] const Base& base() const { return base_; }
  /// Passes the added parts to `use`. Returns false, without a call, if some target is too far for
  /// PackedExit.
  template <typename Use>
  bool with_added(Use use) const {
    if (!far_.empty()) return false;
    use(blocks_.pieces(), branches_.pieces(), exits_.pieces(), std::span{weights_});
    return true;
  }

 private:
  void weigh_all();
  [[nodiscard]] const LoggedBlock& logged(std::uint32_t exit_id) const {
    const std::size_t before = base_.blocks.size();
    return exit_id < before ? base_.blocks[exit_id] : blocks_[exit_id - before];
  }

  Base base_;
  ChunkedArray<LoggedBlock> blocks_;
  ChunkedArray<NearBranch> branches_;
  ChunkedArray<PackedExit> exits_;
  std::vector<ExitWeight> weights_;
  /// Weights of all exits, built on the first count(): instructions in the upper half.
  std::vector<std::uint64_t> counted_;
  ValuePoints values_;
  BlockCode code_;
  std::map<std::uint32_t, TraceeAddr> far_;  ///< Targets too far for PackedExit, by exit id.
};

}  // namespace backtrail::decoder
