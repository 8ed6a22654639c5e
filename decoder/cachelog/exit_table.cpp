#include "decoder/cachelog/exit_table.hpp"

#include <algorithm>

namespace backtrail::decoder {

ExitTable::ExitTable(std::uint32_t count, Maker base)
    : make_base_{std::move(base)}, base_count_{count} {}

const LoggedBlock& ExitTable::add_block(BlockFacts block) {
  auto& owned = *blocks_.emplace_back(std::make_unique<OwnedBlock>());
  owned.branches = std::move(block.branches);
  owned.block = {block.head, owned.branches};
  return owned.block;
}

void ExitTable::add_exit(const LoggedExit& exit) {
  exits_.push_back(exit);
  const std::uint64_t branches = exit.passed + (exit.kind != LoggedExitKind::kContinue ? 1U : 0U);
  weights_.push_back(branches | std::uint64_t{exit.executed} << 32U);
}

void ExitTable::count(std::span<const std::uint32_t> numbers, LogCounts& counts) {
  if (base_count_ != 0 && !weighs_base_) {
    const auto& before = base().weights_;
    weights_.insert(weights_.begin(), before.begin(), before.end());
    weighs_base_ = true;
  }
  // Both sums at once; few enough at a time for the halves.
  constexpr std::size_t kAtOnce = 32768;
  const std::uint64_t* weights = weights_.data();
  const std::size_t known = weights_.size();
  while (!numbers.empty()) {
    const auto part = numbers.first(std::min(kAtOnce, numbers.size()));
    numbers = numbers.subspan(part.size());
    std::uint64_t sum = 0;
    for (const std::uint32_t number : part) sum += number < known ? weights[number] : 0;
    counts.branches += sum & 0xffff'ffffU;
    counts.instructions += sum >> 32U;
  }
}

}  // namespace backtrail::decoder
