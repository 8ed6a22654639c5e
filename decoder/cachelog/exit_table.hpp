#pragma once
/// @file
/// What the exit numbers in a log mean.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::decoder {

using TakenBranch = std::pair<TraceeAddr, TraceeAddr>;

/// One superblock's part of the table: where it begins, and the branches taken inside it.
struct LoggedBlock {
  TraceeAddr head;
  std::span<const TakenBranch> branches;
};

enum class LoggedExitKind : std::uint8_t {
  kDirect,    ///< A taken branch from `from` to `to`.
  kIndirect,  ///< A taken branch from `from` to wherever the thread was next.
  kContinue,  ///< No branch.
};

struct LoggedExit {
  const LoggedBlock* block = nullptr;
  TraceeAddr from;
  TraceeAddr to;
  std::uint16_t passed = 0;  ///< How many of the block's branches were taken before it.
  LoggedExitKind kind = LoggedExitKind::kDirect;
  std::uint16_t executed = 0;  ///< Instructions since the head, the branching one included.
};

/// Sums over logged numbers.
struct LogCounts {
  std::uint64_t branches = 0;
  std::uint64_t instructions = 0;
};

/// Grows only: a number means the same for ever.
class ExitTable {
 public:
  ExitTable() = default;
  /// Begins with the `count` exits of another table, which does not change any more. It is made
  /// when somebody asks for one of them: many programs are recorded and never looked at.
  using Maker = std::function<std::shared_ptr<const ExitTable>()>;
  ExitTable(std::uint32_t count, Maker base);

  /// The number that the next exit will get.
  [[nodiscard]] std::uint32_t next_number() const {
    return base_count_ + static_cast<std::uint32_t>(exits_.size());
  }
  struct BlockFacts {
    TraceeAddr head;
    std::vector<TakenBranch> branches;
  };
  const LoggedBlock& add_block(BlockFacts block);
  /// `exit.block` is one that add_block() returned, or lives as long as the table.
  void add_exit(const LoggedExit& exit);
  /// nullptr for a number that no exit has.
  [[nodiscard]] const LoggedExit* find(std::uint32_t number) const {
    if (number < base_count_) return base().find(number);
    number -= base_count_;
    return number < exits_.size() ? &exits_[number] : nullptr;
  }
  void count(std::span<const std::uint32_t> numbers, LogCounts& counts);

 private:
  struct OwnedBlock {
    LoggedBlock block;
    std::vector<TakenBranch> branches;
  };
  [[nodiscard]] const ExitTable& base() const {
    if (!base_) base_ = make_base_();
    return *base_;
  }

  Maker make_base_;
  mutable std::shared_ptr<const ExitTable> base_;
  std::uint32_t base_count_ = 0;
  std::vector<std::unique_ptr<OwnedBlock>> blocks_;
  std::vector<LoggedExit> exits_;
  /// By number: branches, and instructions in the upper half. Small and apart from the rest, so
  /// that counting stays in the CPU's cache. Those of the base come in front of ours when somebody
  /// counts.
  std::vector<std::uint64_t> weights_;
  bool weighs_base_ = false;
};

}  // namespace backtrail::decoder
