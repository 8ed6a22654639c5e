// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/recorded_values.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;

void RecordedValues::add(std::uint32_t block, const translate::Superblock& made,
                         decoder::ExitTable& exits) {
  std::vector<decoder::LoggedValue> logged;
  logged.reserve(made.values.size());
  for (const translate::ValuePoint& point : made.values) {
    // Superblocks are less than 2 GiB long (ExitTable::add_block).
    logged.push_back({.pc = static_cast<std::int32_t>(point.pc - made.start),
                      .passed = point.passed,
                      .kind = point.kind});
    offsets_.push_back(static_cast<std::uint16_t>(point.offset));
  }
  exits.values().add_block(block, logged);
  for (const translate::Exit& exit : made.exits) exits.values().add_exit(exit.id, exit.values);
}

std::size_t RecordedValues::count_at(const CodeBlock& block, std::uint32_t offset,
                                     const translate::PcMapEntry& map_entry,
                                     const decoder::ExitTable& exits) const {
  const auto logged = exits.values().of_block(block.logged);
  if (logged.empty()) return 0;
  std::size_t next = exits.values().first_of(block.logged);
  std::vector<translate::ValuePoint> points;
  points.reserve(logged.size());
  for (const decoder::LoggedValue& value : logged) {
    points.push_back({.pc = block.start + static_cast<std::uint64_t>(std::int64_t{value.pc}),
                      .offset = offset_of(next++),
                      .passed = value.passed,
                      .kind = value.kind});
  }
  return translate::values_recorded(points, block.side_exits_at, offset, map_entry);
}

}  // namespace backtrail::tracee::cache
