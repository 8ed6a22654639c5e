#include "decoder/cachelog/exit_table.hpp"

namespace backtrail::decoder {

const LoggedBlock& ExitTable::add_block(LoggedBlock block) {
  return *blocks_.emplace_back(std::make_unique<LoggedBlock>(std::move(block)));
}

}  // namespace backtrail::decoder
