// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where in their translations superblocks record values.

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"

namespace backtrail::tracee::cache {

class RecordedValues {
 public:
  /// Adds a superblock's values here and, with its exits, which must have been added, to `exits`.
  void add(std::uint32_t block, const arch::cpu::translate::Superblock& made,
           decoder::ExitTable& exits);
  /// Returns how many values are recorded when a thread is at an offset within the superblock.
  [[nodiscard]] std::size_t count_at(std::uint32_t block, std::uint32_t offset,
                                     const arch::cpu::translate::PcMapEntry& map_entry) const;

 private:
  struct Values {
    std::vector<arch::cpu::translate::ValuePoint> points;
    std::uint32_t side_exits_at = 0;
  };
  std::unordered_map<std::uint32_t, Values> blocks_;  ///< By number in the ExitTable.
};

}  // namespace backtrail::tracee::cache
