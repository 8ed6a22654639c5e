#include "decoder/cachelog/exit_table.hpp"

namespace backtrail::decoder {

const LoggedBlock& ExitTable::add_block(LoggedBlock block) {
  return *blocks_.emplace_back(std::make_unique<LoggedBlock>(std::move(block)));
}

void ExitTable::add_exit(const LoggedExit& exit) {
  exits_.push_back(exit);
  const bool branches = exit.kind != LoggedExitKind::kContinue;
  weights_.push_back({static_cast<std::uint16_t>(exit.passed + (branches ? 1 : 0)), exit.executed});
}

void ExitTable::count(std::span<const std::uint32_t> numbers, LogCounts& counts) const {
  for (const std::uint32_t number : numbers) {
    if (number >= weights_.size()) continue;
    counts.branches += weights_[number].branches;
    counts.instructions += weights_[number].instructions;
  }
}

}  // namespace backtrail::decoder
