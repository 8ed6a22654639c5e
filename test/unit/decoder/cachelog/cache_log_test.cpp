// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/cache_log.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

class Collector : public TraceConsumer {
 public:
  void consume(std::span<const Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  void consume_mark(const TraceMark& mark) override {
    pins.emplace_back(pin_id(mark), all.size() + static_cast<std::size_t>(mark.cpu));
  }
  std::vector<Record> all;
  void consume_facts(std::span<const ValueFact> facts) override {
    for (ValueFact fact : facts) {
      fact.record = all.size() - 1 - fact.record;
      values.push_back(fact);
    }
  }
  std::vector<ValueFact> values;  ///< By the numbers of their records.
  /// Sentinel ids, each with the number of records before it.
  std::vector<std::pair<std::uint64_t, std::size_t>> pins;
};

/// Superblock A at 0x100 has a jump to 0x200 inside, and exits by a call (exit id 0) and a return
/// (1). Superblock B at 0x300 falls through (2).
class CacheLogTest : public testing::Test {
 protected:
  CacheLogTest() {
    const std::array<TakenBranch, 1> inside{TakenBranch{0x110_ta, 0x200_ta}};
    const std::uint32_t a = exits_->add_block(0x100_ta, inside);
    const std::uint32_t b = exits_->add_block(0x300_ta, {});
    exits_->add_exit({a, 0x208_ta, 0x300_ta, 1, LoggedExitKind::kDirect});
    exits_->add_exit({a, 0x210_ta, {}, 1, LoggedExitKind::kIndirect});
    exits_->add_exit({b, {}, 0x320_ta, 0, LoggedExitKind::kContinue});
  }
  std::vector<Record> drained(CacheLog& log) {
    Collector collector;
    log.drain(collector);
    return collector.all;
  }
  std::shared_ptr<ExitTable> exits_ = std::make_shared<ExitTable>();
};

TEST_F(CacheLogTest, AnExitStandsForAllBranchesOnItsWay) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 1>{0});
  const std::vector<Record> expected{branch(0x110_ta, 0x200_ta), branch(0x208_ta, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, TheNewestBranchesAloneAreDecodedWhereNoMoreAreWanted) {
  // The call stands for two branches, the fall-through for none.
  std::vector<std::uint32_t> entries(400'000, 0);
  for (std::size_t i = 0; i < entries.size(); i += 4) entries[i] = 2;
  const std::uint64_t all = entries.size() / 4 * 3 * 2;
  constexpr std::uint64_t kWanted = 1000;
  for (const bool holds : {false, true}) {
    CacheLog whole{exits_, entries.size() * sizeof entries[0]};
    CacheLog part{exits_, entries.size() * sizeof entries[0]};
    for (CacheLog* log : {&whole, &part}) {
      if (holds) {
        log->hold_entries(entries);
      } else {
        log->add_entries(entries);
      }
      log->add_record(async_transfer(0x300_ta, 0x999_ta));
    }
    EXPECT_EQ(part.keep_newest(2 * all), 0U);
    const std::uint64_t dropped = part.keep_newest(kWanted);
    const std::vector<Record> expected = drained(whole);
    const std::vector<Record> newest = drained(part);
    ASSERT_EQ(expected.size(), all + 1);
    ASSERT_GT(newest.size(), kWanted);
    EXPECT_LT(newest.size(), 16'000U);
    // A gap and the newest records.
    EXPECT_EQ(dropped + newest.size() - 1, expected.size());
    EXPECT_EQ(newest.front().kind, RecordKind::kGap);
    EXPECT_TRUE(std::equal(newest.begin() + 1, newest.end(),
                           expected.end() - static_cast<std::ptrdiff_t>(newest.size()) + 1));
  }
}

/// Growing takes memory from the kernel at once, too, and keeps what is there.
TEST_F(CacheLogTest, MemoryForManyEntriesIsToldBeforeItIsWritten) {
  static std::vector<std::size_t> told;
  told.clear();
  constexpr std::size_t kEntries = 8UL * 1024;
  CacheLog log{exits_, 1 << 20,
               [](std::span<std::uint8_t> memory) { told.push_back(memory.size()); }};
  const std::vector<std::uint32_t> entries(kEntries, 2);
  log.add_entries(entries);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.add_entries(entries);
  constexpr std::size_t kBytes = kEntries * sizeof entries[0];
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.front(), kBytes);
  EXPECT_GE(told.back(), 2 * kBytes);
  EXPECT_LE(told.size(), 3U);
  const std::vector<Record> expected{branch(0x110_ta, 0x200_ta), branch(0x208_ta, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

/// Which memory is constant is known however long ago it was told.
TEST_F(CacheLogTest, FactsOfMemoryOutliveTheEntriesAroundThem) {
  CacheLog log{exits_, 1};
  const std::vector<ValueFact> constant{
      {.pc = 0x1000_ta, .value = 0x1000, .kind = arch::kConstantKind}};
  const std::vector<ValueFact> value{{.pc = 0x100_ta, .value = 5, .kind = 3}};
  log.add_facts(constant);
  log.add_facts(value);
  log.add_entries(std::vector<std::uint32_t>(400'000, 0));
  (void)log.keep_newest(1000);
  Collector collector;
  log.drain(collector);
  ASSERT_FALSE(collector.all.empty());
  EXPECT_EQ(collector.all.front().kind, RecordKind::kGap);
  EXPECT_EQ(collector.values,
            (std::vector<ValueFact>{{0, 0x1000_ta, 0x1000, arch::kConstantKind}}));
}

TEST_F(CacheLogTest, DroppedFactsOfMemoryAreNotTooMany) {
  CacheLog log{exits_, 1};
  constexpr std::size_t kRounds = 100'000;
  const std::vector<ValueFact> change{
      {.pc = 0x1000_ta, .value = 0x1000, .kind = arch::kVariableKind},
      {.pc = 0x1000_ta, .value = 0x1000, .kind = arch::kBecomesConstantKind}};
  for (std::size_t i = 0; i < kRounds; ++i) log.add_facts(change);
  log.add_entries(std::vector<std::uint32_t>(400'000, 0));
  (void)log.keep_newest(1000);
  Collector collector;
  log.drain(collector);
  ASSERT_FALSE(collector.values.empty());
  EXPECT_LT(collector.values.size(), kRounds);
  EXPECT_EQ(collector.values.front().kind, arch::kVariableKind);
  EXPECT_EQ(collector.values.back(), (ValueFact{0, 0x1000_ta, 0x1000, arch::kBecomesConstantKind}));
}

/// The place of an indirect branch's target is not known until the thread arrives.
TEST_F(CacheLogTest, FactsOfMemoryWaitForAPlace) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 1>{1});
  const std::vector<ValueFact> constant{
      {.pc = 0x1000_ta, .value = 0x1000, .kind = arch::kConstantKind}};
  log.add_facts(constant);
  Collector collector;
  log.drain(collector);
  EXPECT_EQ(collector.values,
            (std::vector<ValueFact>{{0, 0x1000_ta, 0x1000, arch::kVariableKind}}));
  log.add_arrival(0x300_ta);
  log.drain(collector);
  ASSERT_EQ(collector.values.size(), 2U);
  EXPECT_EQ(collector.values.back(), (ValueFact{1, 0x1000_ta, 0x1000, arch::kConstantKind}));
}

TEST_F(CacheLogTest, WhatIsClearedIsAGap) {
  CacheLog log{exits_, 1};
  const std::array<std::uint32_t, 2> held{0, 0};
  log.add_entries(held);
  log.add_record(async_transfer(0x300_ta, 0x999_ta));
  log.hold_entries(held);
  log.clear();
  EXPECT_TRUE(log.empty());
  log.add_entries(std::array<std::uint32_t, 1>{0});
  const std::vector<Record> expected{gap(GapReason::kOverflow, {}, 0x100_ta),
                                     branch(0x110_ta, 0x200_ta), branch(0x208_ta, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, WhatItOwnsOutlivesTheMemoryThatItHeld) {
  constexpr std::uint64_t kAll = 200'000;
  constexpr std::uint64_t kKept = 1000;
  auto entries = std::make_unique<std::vector<std::uint32_t>>(kAll, 0);
  CacheLog log{exits_, kAll * sizeof(std::uint32_t)};
  log.hold_entries(*entries);
  log.add_record(async_transfer(0x300_ta, 0x999_ta));
  // Two branches for each entry; the event counts as an entry.
  EXPECT_EQ(log.own_newest(kKept), 2 * (kAll - kKept + 1));
  EXPECT_LE(log.bytes(), kKept * sizeof(std::uint32_t));
  entries.reset();
  const std::vector<Record> newest = drained(log);
  ASSERT_EQ(newest.size(), 1 + 2 * (kKept - 1) + 1);  // A gap comes first.
  EXPECT_EQ(newest.front().kind, RecordKind::kGap);
  EXPECT_EQ(newest.back(), async_transfer(0x300_ta, 0x999_ta));
}

TEST_F(CacheLogTest, PinsAreToldOfAtTheirPlaces) {
  using Pin = std::pair<std::uint64_t, std::size_t>;
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.add_record(pin_record(1, 0));  // At this place.
  log.add_record(pin_record(2, 1));  // After the next entry, a return whose target is unknown.
  log.add_record(pin_record(3, 9));
  log.add_record(async_transfer(0x300_ta, 0x999_ta));
  log.add_record(pin_record(4, 0));
  log.add_entries(std::array<std::uint32_t, 2>{1, 2});
  Collector collector;
  log.drain(collector);
  EXPECT_EQ(collector.pins, (std::vector<Pin>{{1, 2}, {4, 3}, {2, 5}}));
  EXPECT_EQ(collector.all.size(), 5U);
  log.add_entries(std::array<std::uint32_t, 8>{2, 2, 2, 2, 2, 2, 2, 2});
  log.drain(collector);
  EXPECT_EQ(collector.pins.back(), (Pin{3, 5}));
}

TEST_F(CacheLogTest, PinsInWhatIsDroppedAreGone) {
  CacheLog log{exits_, 4};
  log.add_record(pin_record(1, 5));
  log.add_record(pin_record(2, 0));
  const std::vector<std::uint32_t> many(64UL * 1024, 2);
  for (int i = 0; i < 4; ++i) log.add_entries(many);
  log.add_record(pin_record(3, 0));
  Collector collector;
  log.drain(collector);
  ASSERT_EQ(collector.pins.size(), 1U);
  EXPECT_EQ(collector.pins[0].first, 3U);
}

TEST_F(CacheLogTest, ExitsMayLeadAnywhere) {
  const std::uint32_t block = exits_->add_block(0x300_ta, {});
  const std::uint32_t exit_id = exits_->next_exit_id();
  exits_->add_exit({block, 0x304_ta, 0x7fff'0000'0000_ta, 0, LoggedExitKind::kDirect, 2});
  exits_->add_exit({block, 0x308_ta, 0x300_ta, 0, LoggedExitKind::kDirect, 3});
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 2>{exit_id, exit_id + 1});
  const std::vector<Record> expected{branch(0x304_ta, 0x7fff'0000'0000_ta),
                                     branch(0x308_ta, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
  // Added exits cannot be saved then.
  EXPECT_FALSE(exits_->with_added([](auto&&...) {}));
}

TEST_F(CacheLogTest, NumbersGoOnBehindTheBase) {
  const std::array<LoggedBlock, 1> blocks{LoggedBlock{0x500_ta, 0, 1}};
  const std::array<NearBranch, 1> branches{NearBranch{0x10, -0x100}};
  const std::array<PackedExit, 1> packed{PackedExit{.from = 0x20, .to = 0x40}};
  const std::array<ExitWeight, 1> weights{ExitWeight{2, 7}};
  const ExitTable::Base base{blocks, branches, packed, weights, nullptr};
  ASSERT_TRUE(ExitTable::is_consistent(base));
  const auto exits = std::make_shared<ExitTable>(base);
  const std::array<TakenBranch, 1> inside{TakenBranch{0x610_ta, 0x620_ta}};
  exits->add_exit(
      {exits->add_block(0x600_ta, inside), 0x630_ta, 0x500_ta, 1, LoggedExitKind::kDirect, 5});
  EXPECT_EQ(exits->next_exit_id(), 2U);
  const std::array<std::uint32_t, 3> entries{0, 1, 9};
  LogCounts counts;
  exits->count(entries, counts);
  EXPECT_EQ(counts.branches, 4U);
  EXPECT_EQ(counts.instructions, 12U);
  CacheLog log{exits, 1};
  log.add_entries(std::span{entries}.first(2));
  const std::vector<Record> expected{branch(0x510_ta, 0x400_ta), branch(0x520_ta, 0x540_ta),
                                     branch(0x610_ta, 0x620_ta), branch(0x630_ta, 0x500_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, AnIndirectBranchGoesToTheNextHead) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 2>{1, 2});
  const std::vector<Record> expected{branch(0x110_ta, 0x200_ta), branch(0x210_ta, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, AnIndirectBranchGoesToWhereTheThreadArrived) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 1>{1});
  log.add_arrival(0x999_ta);
  const std::vector<Record> expected{branch(0x110_ta, 0x200_ta), branch(0x210_ta, 0x999_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, AnIndirectBranchWaitsOverADrain) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 1>{1});
  EXPECT_EQ(drained(log).size(), 1U);
  log.add_entries(std::array<std::uint32_t, 1>{2});
  EXPECT_EQ(drained(log), std::vector<Record>{branch(0x210_ta, 0x300_ta)});
}

TEST_F(CacheLogTest, OtherRecordsKeepTheirPlace) {
  CacheLog log{exits_, 1};
  const Record signal = async_transfer(0x300_ta, 0x500_ta);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.add_record(signal);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  const auto records = drained(log);
  ASSERT_EQ(records.size(), 5U);
  EXPECT_EQ(records[2], signal);
}

TEST_F(CacheLogTest, KeepsTheNewestAndSaysThatOlderOnesAreLost) {
  CacheLog log{exits_, 1};
  const std::vector<std::uint32_t> many(1'000'000, 0);
  log.add_entries(many);
  log.add_entries(std::array<std::uint32_t, 1>{2});
  const auto records = drained(log);
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records.front().kind, RecordKind::kGap);
  EXPECT_EQ(records.front().reason, GapReason::kOverflow);
  EXPECT_EQ(log.numbers_seen(), 1'000'001U);
  EXPECT_GT(log.numbers_dropped(), 0U);
  EXPECT_LT(records.size(), 2'000'000U);
}

TEST_F(CacheLogTest, ANumberThatNoExitHasIsALoss) {
  CacheLog log{exits_, 1};
  log.add_entries(std::array<std::uint32_t, 2>{77, 0});
  const auto records = drained(log);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0], gap(GapReason::kOverflow, TraceeAddr{}, 0x100_ta));
}

TEST_F(CacheLogTest, HeldNumbersAreReadWhereTheyAre) {
  CacheLog log{exits_, 4};
  std::array<std::uint32_t, 4> memory{0, 2, 1, 2};
  log.hold_entries(std::span{memory}.first(1));
  log.hold_entries(std::span{memory}.subspan(1, 1));
  log.add_record(async_transfer(0x320_ta, 0x400_ta));
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.hold_entries(std::span{memory}.last(2));
  log.add_arrival(0x320_ta);
  EXPECT_EQ(log.numbers_seen(), 5U);
  const std::vector<Record> call{branch(0x110_ta, 0x200_ta), branch(0x208_ta, 0x300_ta)};
  std::vector<Record> expected = call;
  expected.push_back(async_transfer(0x320_ta, 0x400_ta));
  expected.insert(expected.end(), call.begin(), call.end());
  expected.push_back(branch(0x110_ta, 0x200_ta));
  expected.push_back(branch(0x210_ta, 0x300_ta));
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, OfABusyLogNotAllRecordsAreInMemoryAtOnce) {
  struct : TraceConsumer {
    void consume(std::span<const Record> records) override {
      most = std::max(most, records.size());
      all += records.size();
    }
    std::size_t most = 0;
    std::size_t all = 0;
  } counter;
  CacheLog log{exits_, 8U << 20U};
  const std::vector<std::uint32_t> memory(1U << 20U, 0);
  log.hold_entries(memory);
  log.drain(counter);
  EXPECT_EQ(counter.all, 2 * memory.size());
  EXPECT_LT(counter.most, memory.size() / 8);
}

TEST_F(CacheLogTest, AShortLogTakesLittleRoom) {
  const auto pages = [] {
    std::ifstream statm{"/proc/self/statm"};
    std::uint64_t size = 0;
    statm >> size;
    return size;
  };
  const std::uint64_t before = pages();
  std::vector<std::unique_ptr<CacheLog>> logs;
  for (int i = 0; i < 2000; ++i) {
    logs.push_back(std::make_unique<CacheLog>(exits_, 1U << 24U));
    logs.back()->add_entries(std::array<std::uint32_t, 3>{0, 1, 2});
  }
  EXPECT_LT(pages() - before, logs.size() * 8);
}

TEST_F(CacheLogTest, WhatIsForgottenLeavesAGap) {
  CacheLog log{exits_, 4};
  std::array<std::uint32_t, 3> memory{0, 1, 2};
  log.hold_entries(std::span{memory}.first(1));
  log.add_arrival(0x300_ta);
  log.hold_entries(std::span{memory}.subspan(1, 1));
  log.add_entries(std::array<std::uint32_t, 1>{2});
  log.hold_entries(std::span{memory}.last(1));
  log.forget(std::span{memory}.first(2));
  EXPECT_EQ(log.numbers_dropped(), 2U);
  const std::vector<Record> expected{gap(GapReason::kOverflow, TraceeAddr{}, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

TEST_F(CacheLogTest, OnlyWhatIsKeptIsCopied) {
  CacheLog log{exits_, 4};
  const std::vector<std::uint32_t> many(1024UL * 1024, 2);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.add_entries(many);
  EXPECT_EQ(log.numbers_seen(), many.size() + 1);
  EXPECT_EQ(log.numbers_dropped(), many.size() + 1 - 128UL * 1024);
  const std::vector<Record> expected{gap(GapReason::kOverflow, TraceeAddr{}, 0x300_ta)};
  EXPECT_EQ(drained(log), expected);
}

/// A records a value before its jump and one after it, of which the call's exit comes after both
/// and the return's after the first; B records one.
class RecordedValuesTest : public CacheLogTest {
 protected:
  RecordedValuesTest() {
    const std::array<LoggedValue, 2> of_a{LoggedValue{.pc = 4, .passed = 0, .kind = 1},
                                          LoggedValue{.pc = 0x102, .passed = 1, .kind = 2}};
    const std::array<LoggedValue, 1> of_b{LoggedValue{.pc = 8, .passed = 0, .kind = 3}};
    exits_->values().add_block(0, of_a);
    exits_->values().add_block(1, of_b);
    exits_->values().add_exit(0, 2);
    exits_->values().add_exit(1, 1);
    exits_->values().add_exit(2, 1);
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_.at(i) = 10 + i;
  }
  Collector drain(CacheLog& log) {
    Collector collector;
    collector.all.push_back(gap(GapReason::kStart, 0_ta, 0x100_ta));
    log.drain(collector);
    return collector;
  }
  std::array<std::uint64_t, 8> memory_{};
};

TEST_F(RecordedValuesTest, TheyArePlacedByTheEntriesThatTheyCameBefore) {
  CacheLog log{exits_, 1};
  // A, by the call; B, which falls through; A again, by the return.
  log.use_values(memory_);
  log.begin_values();
  log.add_entries(std::array<std::uint32_t, 3>{0, 2, 1});
  log.end_values(4, 0);
  log.add_arrival(0x500_ta);
  const Collector found = drain(log);
  const std::vector<ValueFact> expected{
      {0, 0x104_ta, 10, 1}, {1, 0x202_ta, 11, 2}, {2, 0x308_ta, 12, 3}, {2, 0x104_ta, 13, 1}};
  EXPECT_EQ(found.values, expected);
}

TEST_F(RecordedValuesTest, FewerThanTheEntriesStandForAreNotUsed) {
  CacheLog log{exits_, 1};
  log.use_values(memory_);
  log.add_entries(std::array<std::uint32_t, 2>{0, 2});
  log.end_values(2, 0);
  EXPECT_TRUE(drain(log).values.empty());
}

TEST_F(RecordedValuesTest, WithoutAnAnchorNothingIsKnown) {
  CacheLog log{exits_, 1};
  log.use_values(memory_);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  EXPECT_TRUE(drain(log).values.empty());
}

TEST_F(RecordedValuesTest, WhileTheThreadRunsNothingIsKnown) {
  CacheLog log{exits_, 1};
  log.use_values(memory_);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  log.end_values(2, 0);
  log.begin_values();
  EXPECT_TRUE(drain(log).values.empty());
}

TEST_F(RecordedValuesTest, FactsOfStopsAreInTheirPlaces) {
  CacheLog log{exits_, 1};
  log.use_values(memory_);
  log.add_entries(std::array<std::uint32_t, 1>{0});
  // The thread stopped in B, which had recorded its value.
  log.end_values(3, 1);
  log.add_arrival(0x300_ta);
  const ValueFact of_b{.pc = 0x308_ta, .value = 12, .kind = 3};
  log.add_facts({&of_b, 1});
  log.add_record(branch(0x310_ta, 0x300_ta));
  log.begin_values();
  log.add_entries(std::array<std::uint32_t, 1>{2});
  log.end_values(4, 0);
  const Collector found = drain(log);
  const std::vector<ValueFact> expected{
      {0, 0x104_ta, 10, 1}, {1, 0x202_ta, 11, 2}, {2, 0x308_ta, 12, 3}, {3, 0x308_ta, 13, 3}};
  EXPECT_EQ(found.values, expected);
}

}  // namespace
}  // namespace backtrail::decoder
