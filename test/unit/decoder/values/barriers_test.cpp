// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/barriers.hpp"

#include <cstdint>
#include <iterator>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace backtrail::decoder::values {
namespace {

TEST(IndexSet, FindsNeighboursFarApart) {
  constexpr std::uint32_t kLimit = 20'000;
  IndexSet set{kLimit};
  EXPECT_EQ(set.next(0), IndexSet::kNone);
  EXPECT_EQ(set.previous(kLimit), IndexSet::kNone);
  set.insert(5);
  set.insert(kLimit);
  EXPECT_EQ(set.next(6), kLimit);
  EXPECT_EQ(set.previous(kLimit), 5U);
  EXPECT_EQ(set.previous(5), IndexSet::kNone);
  set.erase(kLimit);
  EXPECT_EQ(set.next(6), IndexSet::kNone);
}

TEST(IndexSet, AgreesWithAnOrderedSet) {
  constexpr std::uint32_t kLimit = 9'000;
  constexpr int kRounds = 3'000;
  std::mt19937 random{1};
  const auto pick = [&random] { return static_cast<std::uint32_t>(random() % (kLimit + 1)); };
  IndexSet set{kLimit};
  std::set<std::uint32_t> expected;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint32_t in = pick();
    const std::uint32_t out = random() % 2 == 0 || expected.empty() ? pick() : *expected.begin();
    set.insert(in);
    expected.insert(in);
    // Few members stay, so that most words are empty.
    set.erase(out);
    expected.erase(out);
    while (expected.size() > 4) {
      set.erase(*expected.begin());
      expected.erase(expected.begin());
    }
    const std::uint32_t at = pick();
    const auto after = expected.lower_bound(at);
    EXPECT_EQ(set.next(at), after == expected.end() ? IndexSet::kNone : *after);
    EXPECT_EQ(set.previous(at), after == expected.begin() ? IndexSet::kNone : *std::prev(after));
    EXPECT_EQ(set.contains(at), expected.contains(at));
  }
}

}  // namespace
}  // namespace backtrail::decoder::values
