// SPDX-License-Identifier: Apache-2.0
// Tests thread times: packing, damage, lookup.
#include "decoder/corefile/thread_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

using ::testing::SizeIs;

ThreadTimes some_times() {
  return {.since_ns = 1000,
          .until_ns = 9000,
          .lost = 1,
          .others = 2,
          .others_ns = 30,
          .pins = {{2000, 2000, 10, 50}, {3000, 4000, 40, 40}, {5000, 5000, 40, 90}},
          .off = {{3000, 4000, false}, {6000, 6500, true}}};
}

std::vector<std::uint8_t> packed(const ThreadTimes& times) {
  std::vector<std::uint8_t> bytes;
  append_times(7, times, bytes);
  return bytes;
}

TEST(ThreadTimes, GiveBackWhatWentIn) {
  const auto bytes = packed(some_times());
  const BlockScan scan = scan_blocks(bytes);
  EXPECT_THAT(scan.blocks, SizeIs(0));
  EXPECT_EQ(scan.unreadable_bytes, 0U);
  ASSERT_THAT(scan.times, SizeIs(1));
  EXPECT_EQ(scan.times[0].tid, 7U);
  const auto times = decode_times(scan.times[0]);
  ASSERT_TRUE(times);
  ThreadTimes wanted = some_times();
  wanted.pins[0].latest = 40;  // The next pin limits this one.
  EXPECT_EQ(*times, wanted);
}

TEST(ThreadTimes, KeepTheNewestOfTooMany) {
  ThreadTimes times;
  for (std::uint64_t i = 0; i < kMostTimePins + 10; ++i) {
    times.pins.push_back({i, i, i, i});
    times.off.push_back({i, i, false});
  }
  const auto bytes = packed(times);
  const auto back = decode_times(scan_blocks(bytes).times.at(0));
  ASSERT_TRUE(back);
  EXPECT_THAT(back->pins, SizeIs(kMostTimePins));
  EXPECT_EQ(back->pins.front().earliest, 10U);
  EXPECT_THAT(back->off, SizeIs(kMostOffCpu));
}

TEST(ThreadTimes, AnotherVersionIsNotRead) {
  std::vector<std::uint8_t> bytes;
  append_packed({.magic = kTimesMagic, .tid = 7, .records = kTimesVersion + 1, .first = 0}, {},
                bytes);
  EXPECT_FALSE(decode_times(scan_blocks(bytes).times.at(0)));
}

TEST(ThreadTimes, NoContentsOfAnyBytesAreRead) {
  std::vector<std::uint8_t> raw(40, 0xff);
  for (std::size_t size = 0; size <= raw.size(); ++size) {
    std::vector<std::uint8_t> bytes;
    append_packed({.magic = kTimesMagic, .tid = 7, .records = kTimesVersion, .first = 0},
                  std::span{raw}.first(size), bytes);
    EXPECT_FALSE(decode_times(scan_blocks(bytes).times.at(0)));
  }
}

TEST(ThreadTimes, APlaceIsWhereItWasSeenMeanwhile) {
  const TraceTimes times{some_times(), 100};
  const PlaceRange seen = times.place_of({3000, 4000, false});
  EXPECT_EQ(seen.earliest, 40U);
  EXPECT_EQ(seen.width(), 0U);
  const PlaceRange unseen = times.place_of({6000, 6500, true});
  EXPECT_EQ(unseen.earliest, 40U);
  EXPECT_EQ(unseen.latest, 100U);
}

TEST(ThreadTimes, ATimeLiesBetweenWhatWasSeenBeforeAndAfter) {
  const TraceTimes times{some_times(), 100};
  const TimeRange before = times.time_of(5);
  EXPECT_EQ(before.earliest_ns, 1000U);
  EXPECT_EQ(before.latest_ns, 2000U);
  const TimeRange still = times.time_of(40);
  EXPECT_EQ(still.earliest_ns, 3000U);
  EXPECT_EQ(still.latest_ns, 9000U);
  const TimeRange after = times.time_of(60);
  EXPECT_EQ(after.earliest_ns, 4000U);
  EXPECT_EQ(after.latest_ns, 9000U);
}

}  // namespace
}  // namespace backtrail::decoder
