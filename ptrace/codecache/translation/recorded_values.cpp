// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/recorded_values.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;

void RecordedValues::add(std::uint32_t block, const translate::Superblock& made,
                         decoder::ExitTable& exits) {
  if (made.values.empty()) return;
  std::vector<decoder::LoggedValue> logged;
  logged.reserve(made.values.size());
  for (const translate::ValuePoint& point : made.values) {
    // Superblocks are less than 2 GiB long (ExitTable::add_block).
    logged.push_back({static_cast<std::int32_t>(point.pc - made.start), point.passed, point.reg});
  }
  exits.values().add_block(block, logged);
  for (const translate::Exit& exit : made.exits) exits.values().add_exit(exit.id, exit.values);
  blocks_[block] = {made.values, made.side_exits_at};
}

std::size_t RecordedValues::count_at(std::uint32_t block, std::uint32_t offset,
                                     const translate::PcMapEntry& map_entry) const {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return 0;
  return translate::values_recorded(found->second.points, found->second.side_exits_at, offset,
                                    map_entry);
}

}  // namespace backtrail::tracee::cache
