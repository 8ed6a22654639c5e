// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/exit_table.hpp"

#include <algorithm>
#include <limits>

namespace backtrail::decoder {
namespace {

/// Distances with a special meaning: no address, and an address too far away.
constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kFar = kNowhere + 1;

std::int32_t distance_from(TraceeAddr start, TraceeAddr at) {
  if (at == TraceeAddr{}) return kNowhere;
  const auto distance = static_cast<std::int64_t>(at - start);
  const auto narrow = static_cast<std::int32_t>(distance);
  return narrow != distance || narrow <= kFar ? kFar : narrow;
}

std::int32_t near_distance(TraceeAddr start, TraceeAddr at) {
  const std::int32_t distance = distance_from(start, at);
  BT_CHECK(distance != kFar);
  return distance;
}

TraceeAddr address(const BlockView& block, std::int32_t distance) {
  return distance == kNowhere ? TraceeAddr{} : block.at(distance);
}

/// Returns true if a superblock can record these values.
bool are_values_of(std::span<const LoggedValue> values, const LoggedBlock& block) {
  std::uint16_t passed = 0;
  for (const LoggedValue& value : values) {
    if (value.kind >= arch::kValueKinds || value.passed < passed || value.passed > block.branches) {
      return false;
    }
    passed = value.passed;
  }
  return true;
}

/// Returns true if there are no values, or some or none of each superblock and exit.
bool are_consistent(const ValuePoints::Base& values, const ExitTable::Base& base) {
  if (values.first.empty() && values.values.empty() && values.counts.empty()) return true;
  if (values.first.size() != base.blocks.size() || values.counts.size() != base.exits.size()) {
    return false;
  }
  for (std::size_t i = 0; i < base.blocks.size(); ++i) {
    const std::size_t begin = values.first[i];
    const std::size_t end = i + 1 < base.blocks.size() ? values.first[i + 1] : values.values.size();
    if (begin > end || end > values.values.size()) return false;
    if (!are_values_of(values.values.subspan(begin, end - begin), base.blocks[i])) return false;
  }
  const ValuePoints points{values};
  for (std::size_t i = 0; i < base.exits.size(); ++i) {
    if (values.counts[i] > points.of_block(base.exits[i].block()).size()) return false;
  }
  return true;
}

}  // namespace

bool ExitTable::is_consistent(const Base& base) {
  for (const LoggedBlock& block : base.blocks) {
    if (std::uint64_t{block.first_branch} + block.branches > base.branches.size()) return false;
  }
  if (base.exits.size() != base.weights.size()) return false;
  for (std::size_t i = 0; i < base.exits.size(); ++i) {
    const PackedExit& exit = base.exits[i];
    if (exit.block() >= base.blocks.size() || exit.kind() > LoggedExitKind::kContinue) return false;
    const std::uint32_t own = exit.kind() != LoggedExitKind::kContinue ? 1 : 0;
    const std::uint32_t taken = base.weights[i].branches;
    if (taken < own || taken - own > base.blocks[exit.block()].branches) return false;
    if (exit.from == kFar || exit.to == kFar) return false;
  }
  return are_consistent(base.values, base);
}

std::uint32_t ExitTable::add_block(TraceeAddr start, std::span<const TakenBranch> branches) {
  std::vector<NearBranch> taken;
  taken.reserve(branches.size());
  for (const auto& [from, to] : branches) {
    taken.push_back({near_distance(start, from), near_distance(start, to)});
  }
  const std::size_t first = base_.branches.size() + branches_.append(taken);
  blocks_.push_back({.start = start,
                     .first_branch = static_cast<std::uint32_t>(first),
                     .branches = static_cast<std::uint32_t>(taken.size())});
  return static_cast<std::uint32_t>(base_.blocks.size() + blocks_.size() - 1);
}

void ExitTable::add_exit(const NewExit& exit) {
  const TraceeAddr start = logged(exit.block).start;
  const std::int32_t to = distance_from(start, exit.to);
  if (to == kFar) far_[next_exit_id()] = exit.to;
  exits_.push_back({.from = near_distance(start, exit.from),
                    .to = to,
                    .block_and_kind = exit.block << PackedExit::kKindBits |
                                      static_cast<std::uint32_t>(exit.kind)});
  const bool branches = exit.kind != LoggedExitKind::kContinue;
  weights_.push_back({.branches = static_cast<std::uint16_t>(exit.passed + (branches ? 1 : 0)),
                      .instructions = exit.executed});
}

BlockView ExitTable::block(std::uint32_t exit_id) const {
  const LoggedBlock& found = logged(exit_id);
  const std::size_t before = base_.branches.size();
  return {found.start, exit_id < base_.blocks.size()
                           ? base_.branches.subspan(found.first_branch, found.branches)
                           : branches_.piece(found.first_branch - before, found.branches)};
}

std::optional<LoggedExit> ExitTable::find(std::uint32_t exit_id) const {
  const std::size_t before = base_.exits.size();
  if (exit_id >= before && exit_id - before >= exits_.size()) return std::nullopt;
  const PackedExit& packed = exit_id < before ? base_.exits[exit_id] : exits_[exit_id - before];
  const ExitWeight weight = exit_id < before ? base_.weights[exit_id] : weights_[exit_id - before];
  LoggedExit exit{.block = block(packed.block()),
                  .block_number = packed.block(),
                  .kind = packed.kind(),
                  .executed = weight.instructions};
  exit.from = address(exit.block, packed.from);
  exit.to = packed.to == kFar ? far_.at(exit_id) : address(exit.block, packed.to);
  const std::size_t own = exit.kind != LoggedExitKind::kContinue ? 1 : 0;
  exit.block.branches = exit.block.branches.first(weight.branches - own);
  return exit;
}

TraceeAddr ExitTable::target(std::uint32_t exit_id) const {
  const std::size_t before = base_.exits.size();
  const PackedExit& packed = exit_id < before ? base_.exits[exit_id] : exits_[exit_id - before];
  if (packed.to == kFar) return far_.at(exit_id);
  return address({logged(packed.block()).start, {}}, packed.to);
}

std::uint64_t ExitTable::branches_of(std::span<const std::uint32_t> exit_ids) const {
  const std::size_t before = base_.weights.size();
  const std::span<const ExitWeight> added{weights_};
  std::uint64_t sum = 0;
  for (const std::uint32_t exit_id : exit_ids) {
    if (exit_id < before) {
      sum += base_.weights[exit_id].branches;
    } else if (exit_id - before < added.size()) {
      sum += added[exit_id - before].branches;
    }
  }
  return sum;
}

void ExitTable::weigh_all() {
  const std::size_t base = base_.weights.size();
  for (std::size_t exit_id = counted_.size(); exit_id < base + weights_.size(); ++exit_id) {
    const ExitWeight& weight = exit_id < base ? base_.weights[exit_id] : weights_[exit_id - base];
    counted_.push_back(weight.branches | std::uint64_t{weight.instructions} << 32U);
  }
}

void ExitTable::count(std::span<const std::uint32_t> exit_ids, LogCounts& counts) {
  weigh_all();
  // Adds both counts in one sum. The step is small enough that neither half overflows.
  constexpr std::size_t kAtOnce = 32768;
  const std::uint64_t* weights = counted_.data();
  const std::size_t known = counted_.size();
  while (!exit_ids.empty()) {
    const auto part = exit_ids.first(std::min(kAtOnce, exit_ids.size()));
    exit_ids = exit_ids.subspan(part.size());
    std::uint64_t sum = 0;
    for (const std::uint32_t exit_id : part) sum += exit_id < known ? weights[exit_id] : 0;
    counts.branches += sum & 0xffff'ffffU;
    counts.instructions += sum >> 32U;
    if (values_.size() == 0) continue;
    for (const std::uint32_t exit_id : part) counts.values += values_.before_exit(exit_id);
  }
}

}  // namespace backtrail::decoder
