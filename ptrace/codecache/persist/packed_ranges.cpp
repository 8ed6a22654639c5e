// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_ranges.hpp"

#include "ptrace/codecache/persist/packed_numbers.hpp"

namespace backtrail::tracee::cache {

void pack_ranges(std::span<const arch::cpu::translate::Branch> ranges, TraceeAddr start,
                 std::vector<std::uint8_t>& out) {
  TraceeAddr last = start;
  for (const auto& [begin, end] : ranges) {
    put_number(fold_distance(begin - last), out);
    put_number(end - begin, out);
    last = end;
  }
}

CodeRanges unpack_ranges(std::span<const std::uint8_t> packed, TraceeAddr start) {
  CodeRanges ranges;
  PackedReader reader{packed};
  TraceeAddr last = start;
  while (!reader.at_end()) {
    const TraceeAddr begin = last + unfold_distance(reader.number());
    last = begin + reader.number();
    ranges.emplace_back(begin, last);
  }
  return ranges;
}

}  // namespace backtrail::tracee::cache
