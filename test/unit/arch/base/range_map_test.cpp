// SPDX-License-Identifier: Apache-2.0
#include "arch/base/range_map.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace backtrail {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used
using Parts = std::vector<std::pair<TraceeAddr, TraceeAddr>>;

constexpr std::size_t kAny = 1000;

std::string text_of(const RangeMap<int>& map) {
  std::string out;
  for (const auto& [begin, rest] : map.ranges()) {
    out += fmt::format("{:x}-{:x}:{} ", begin.value(), rest.end.value(), rest.value);
  }
  return out;
}

/// Collects the parts that the map tells of.
struct Told {
  Parts parts;
  auto into() {
    return [this](TraceeAddr begin, TraceeAddr end) { parts.emplace_back(begin, end); };
  }
};

TEST(RangeMap, FillsWhatIsEmpty) {
  RangeMap<int> map;
  Told told;
  map.fill(0x20_ta, 0x30_ta, 1, kAny, told.into());
  map.fill(0x40_ta, 0x50_ta, 2, kAny, told.into());
  map.fill(0x10_ta, 0x60_ta, 3, kAny, told.into());
  map.fill(0x28_ta, 0x48_ta, 4, kAny, told.into());
  EXPECT_EQ(text_of(map), "10-20:3 20-30:1 30-40:3 40-50:2 50-60:3 ");
  EXPECT_EQ(told.parts, (Parts{{0x20_ta, 0x30_ta},
                               {0x40_ta, 0x50_ta},
                               {0x10_ta, 0x20_ta},
                               {0x30_ta, 0x40_ta},
                               {0x50_ta, 0x60_ta}}));
  map.fill(0x60_ta, 0x60_ta, 5, kAny, told.into());
  EXPECT_EQ(map.size(), 5U);
}

TEST(RangeMap, CutsWhatIsRemoved) {
  RangeMap<int> map;
  Told told;
  map.fill(0x10_ta, 0x40_ta, 1, kAny, Told{}.into());
  map.fill(0x40_ta, 0x60_ta, 2, kAny, Told{}.into());
  map.remove(0x20_ta, 0x30_ta, told.into());
  map.remove(0x38_ta, 0x48_ta, told.into());
  map.remove(0x0_ta, 0x10_ta, told.into());
  map.remove(0x50_ta, 0x50_ta, told.into());
  EXPECT_EQ(text_of(map), "10-20:1 30-38:1 48-60:2 ");
  EXPECT_EQ(told.parts, (Parts{{0x20_ta, 0x30_ta}, {0x38_ta, 0x40_ta}, {0x40_ta, 0x48_ta}}));
  map.remove(0x0_ta, TraceeAddr{~std::uint64_t{0}});
  EXPECT_TRUE(map.empty());
}

TEST(RangeMap, HasNotMoreRangesThanMayBe) {
  RangeMap<int> map;
  map.fill(0x20_ta, 0x30_ta, 1, 2, Told{}.into());
  map.fill(0x10_ta, 0x40_ta, 2, 2, Told{}.into());
  EXPECT_EQ(text_of(map), "10-20:2 20-30:1 ");
}

TEST(RangeMap, FindsRanges) {
  RangeMap<int> map;
  map.fill(0x10_ta, 0x20_ta, 1, kAny, Told{}.into());
  map.fill(0x30_ta, 0x40_ta, 2, kAny, Told{}.into());
  EXPECT_EQ(map.from(0x1f_ta)->second.value, 1);
  EXPECT_EQ(map.from(0x20_ta)->second.value, 2);
  EXPECT_EQ(map.from(0x40_ta), map.ranges().end());
  EXPECT_TRUE(map.overlaps(0x0_ta, 0x11_ta));
  EXPECT_FALSE(map.overlaps(0x20_ta, 0x30_ta));
  EXPECT_TRUE(map.overlaps(0x1f_ta, 0x20_ta));
  EXPECT_FALSE(map.overlaps(0x15_ta, 0x15_ta));
}

TEST(RangeMap, IsLikeAnArray) {
  constexpr std::uint64_t kBytes = 64;
  std::mt19937 random{5};  // NOLINT(cert-msc51-cpp): the same each time
  RangeMap<int> map;
  std::array<int, kBytes> array{};
  for (int step = 1; step < 2000; ++step) {
    std::uint64_t begin = random() % kBytes;
    std::uint64_t end = random() % kBytes;
    if (begin > end) std::swap(begin, end);
    const bool removes = random() % 2 == 0;
    if (removes) {
      map.remove(TraceeAddr{begin}, TraceeAddr{end});
    } else {
      map.fill(TraceeAddr{begin}, TraceeAddr{end}, step, kAny, Told{}.into());
    }
    for (std::uint64_t i = begin; i < end; ++i) {
      if (removes || array.at(i) == 0) array.at(i) = removes ? 0 : step;
    }
    for (std::uint64_t i = 0; i < kBytes; ++i) {
      const auto at = map.from(TraceeAddr{i});
      const bool is_in = at != map.ranges().end() && at->first <= TraceeAddr{i};
      ASSERT_EQ(is_in ? at->second.value : 0, array.at(i)) << step << ", " << i;
    }
  }
}

}  // namespace
}  // namespace backtrail
