// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_ranges.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

TEST(PackedRanges, ComeBackAsTheyWere) {
  const CodeRanges ranges{{0x5000_ta, 0x5010_ta},
                          {0x5020_ta, 0x5021_ta},
                          {0x4000_ta, 0x4fff_ta},
                          {0x7fff'ffff'f000_ta, 0x7fff'ffff'f123_ta},
                          {0_ta, 15_ta}};
  std::vector<std::uint8_t> packed{1, 2, 3};
  pack_ranges(ranges, 0x5000_ta, packed);
  EXPECT_EQ(unpack_ranges(std::span{packed}.subspan(3), 0x5000_ta), ranges);
  EXPECT_TRUE(unpack_ranges({}, 0x5000_ta).empty());
}

TEST(PackedRanges, AreAFewBytesEach) {
  const CodeRanges ranges{{0x5000_ta, 0x5030_ta}, {0x5040_ta, 0x5060_ta}};
  std::vector<std::uint8_t> packed;
  pack_ranges(ranges, 0x5000_ta, packed);
  EXPECT_LE(packed.size(), 4U);
}

}  // namespace
}  // namespace backtrail::tracee::cache
