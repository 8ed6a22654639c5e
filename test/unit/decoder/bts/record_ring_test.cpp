// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/record_ring.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

std::vector<Record> numbered(std::uint64_t begin, std::uint64_t end) {
  std::vector<Record> records;
  for (std::uint64_t i = begin; i < end; ++i) {
    records.push_back(branch(TraceeAddr{i}, TraceeAddr{i + 1}));
  }
  return records;
}

void expect_numbered(const RecordRing& ring) {
  for (std::uint64_t i = ring.begin(); i < ring.end(); ++i) {
    ASSERT_EQ(ring.at(i).from.value(), i);
  }
}

TEST(RecordRing, KeepsTheNewestInBatchesOfAnySize) {
  for (const std::uint64_t capacity : {1U, 2U, 7U, 170U, 4095U, 4096U, 4097U, 10'000U}) {
    RecordRing ring{capacity};
    std::uint64_t total = 0;
    for (const std::uint64_t batch : {0U, 1U, 3U, 169U, 171U, 4096U, 9000U, 1U, 25'000U, 2U}) {
      ring.append(numbered(total, total + batch));
      total += batch;
      ASSERT_EQ(ring.end(), total);
      ASSERT_EQ(ring.size(), std::min(capacity, total));
      ASSERT_EQ(ring.overwritten(), total - ring.size());
      expect_numbered(ring);
    }
  }
}

TEST(RecordRing, CountsTheGapsAmongLostRecords) {
  const Record lost = gap(GapReason::kOverflow, TraceeAddr{}, TraceeAddr{1});
  const Record other = branch(TraceeAddr{1}, TraceeAddr{2});
  RecordRing ring{3};
  ring.append(std::vector{lost, other, lost});
  EXPECT_EQ(ring.gaps_before(), 0U);
  ring.append(std::vector{other});
  EXPECT_EQ(ring.gaps_before(), 1U);
  ring.append(std::vector{lost, lost, other, other, lost});  // more than there is room for
  EXPECT_EQ(ring.gaps_before(), 4U);
  ring.keep_newest(1);
  EXPECT_EQ(ring.gaps_before(), 4U);
  ring.clear();
  EXPECT_EQ(ring.gaps_before(), 5U);
}

TEST(RecordRing, TakesNoMemoryForRoomThatIsNotUsed) {
  RecordRing ring{std::uint64_t{1} << 60U};
  ring.append(numbered(0, 10'000));
  EXPECT_EQ(ring.size(), 10'000U);
  expect_numbered(ring);
}

/// Returns the number of this process's resident pages.
std::uint64_t resident_pages() {
  std::ifstream statm{"/proc/self/statm"};
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  statm >> size >> resident;
  return resident;
}

TEST(RecordRing, TakesLittleMemoryForFewRecords) {
  const std::uint64_t before = resident_pages();
  std::vector<RecordRing> rings(2000, RecordRing{1U << 20U});
  for (RecordRing& ring : rings) ring.append(numbered(0, 10));
  // Each ring reserves 24 pages.
  EXPECT_LT(resident_pages() - before, rings.size() * 6);
}

TEST(RecordRing, KeepsAtLeastOne) {
  RecordRing ring{0};
  ring.append(numbered(0, 3));
  EXPECT_EQ(ring.size(), 1U);
  expect_numbered(ring);
}

TEST(RecordRing, NumbersGoOnAfterItWasCleared) {
  RecordRing ring{100};
  ring.append(numbered(0, 130));
  ring.clear();
  EXPECT_EQ(ring.size(), 0U);
  EXPECT_EQ(ring.begin(), 130U);
  ring.append(numbered(130, 250));
  EXPECT_EQ(ring.begin(), 150U);
  expect_numbered(ring);
  EXPECT_EQ(ring.overwritten(), 50U);
}

TEST(RecordRing, KeepsFewerWithTheirNumbers) {
  RecordRing ring{10'000};
  ring.append(numbered(0, 13'000));
  ring.keep_newest(20'000);
  EXPECT_EQ(ring.size(), 10'000U);
  ring.keep_newest(5000);
  EXPECT_EQ(ring.begin(), 8000U);
  EXPECT_EQ(ring.end(), 13'000U);
  EXPECT_EQ(ring.overwritten(), 3000U);
  expect_numbered(ring);
  ring.append(numbered(13'000, 19'000));
  EXPECT_EQ(ring.begin(), 9000U);
  expect_numbered(ring);
}

}  // namespace
}  // namespace backtrail::decoder
