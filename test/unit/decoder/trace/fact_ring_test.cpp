// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/fact_ring.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

constexpr arch::ValueKind kRegister = 3;

/// Returns facts of a thread with `end` records, by the numbers of these.
std::deque<ValueFact> facts_at(std::deque<ValueFact> facts, std::uint64_t end) {
  for (ValueFact& fact : facts) fact.record = end - 1 - fact.record;
  return facts;
}

TEST(FactRing, TellsOfMemoryBetweenTheValues) {
  FactRing ring;
  const std::vector<ValueFact> first{{1, 0x10_ta, 5, kRegister},
                                     {0, 0x1000_ta, 0x1000, arch::kBecomesConstantKind}};
  ring.append(first, 4);
  const std::vector<ValueFact> second{{0, 0x12_ta, 6, kRegister}};
  ring.append(second, 9);
  const std::deque<ValueFact> all = ring.since(0);
  EXPECT_EQ(all, (std::deque<ValueFact>{{2, 0x10_ta, 5, kRegister},
                                        {3, 0x1000_ta, 0x1000, arch::kBecomesConstantKind},
                                        {8, 0x12_ta, 6, kRegister}}));
  EXPECT_EQ(ring.values(), 2U);
}

/// Memory that has been constant since an older record was so in all of the oldest block.
TEST(FactRing, MemoryThatIsConstantForLongerIsToldByTheFirstRecord) {
  FactRing ring;
  const std::vector<ValueFact> facts{{3, 0x1000_ta, 0x1000, arch::kBecomesConstantKind},
                                     {2, 0x10_ta, 5, kRegister}};
  ring.append(facts, 5);
  EXPECT_EQ(ring.since(4), (std::deque<ValueFact>{{4, 0x1000_ta, 0x1000, arch::kConstantKind}}));
}

/// All that is told of a page is left out, or nothing.
TEST(FactRing, CodeInConstantMemoryIsLeftOut) {
  constexpr arch::ValueKind kTwoBytes = arch::kCodeKind + 2;
  FactRing ring;
  const std::vector<ValueFact> facts{{4, 0x2000_ta, 0xc300, kTwoBytes},
                                     {3, 0x1000_ta, 0x2000, arch::kBecomesConstantKind},
                                     {1, 0x1008_ta, 0xc301, kTwoBytes},
                                     {1, 0x2008_ta, 0xc302, kTwoBytes},
                                     {0, 0x2008_ta, 2, arch::kCodeKind}};
  ring.append(facts, 5);
  EXPECT_EQ(ring.since(0), facts_at({facts[0], facts[1], facts[3], facts[4]}, 5));
  // The code that was not in constant memory is older.
  EXPECT_EQ(ring.since(1), facts_at({facts[1]}, 5));
}

TEST(FactRing, ManyValuesDisplaceNoMemory) {
  FactRing ring;
  const std::vector<ValueFact> memory{{0, 0x1000_ta, 0x1000, arch::kConstantKind}};
  ring.append(memory, 1);
  const std::vector<ValueFact> values(FactRing::kMost + 5, ValueFact{0, 0x10_ta, 5, kRegister});
  ring.append(values, 2);
  EXPECT_EQ(ring.values(), FactRing::kMost);
  EXPECT_EQ(ring.since(0).front(), (ValueFact{0, 0x1000_ta, 0x1000, arch::kConstantKind}));
  ring.clear();
  EXPECT_TRUE(ring.since(0).empty());
}

}  // namespace
}  // namespace backtrail::decoder
