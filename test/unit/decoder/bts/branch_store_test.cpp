// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/branch_store.hpp"

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "decoder/trace/trace_hub.hpp"

namespace backtrail::decoder {
namespace {

using arch::x86::BtsQualifier;

std::vector<Record> branches(std::uint64_t first, std::uint64_t count) {
  std::vector<Record> out;
  for (std::uint64_t i = 0; i < count; ++i)
    out.push_back(branch(TraceeAddr{first + i}, TraceeAddr{first + i + 1}));
  return out;
}

template <typename T>
int code(const Result<T>& result) {
  return result ? 0 : result.error().code.value();
}

TEST(BranchStore, TellsTheErrorsOfItsFirstInterface) {
  BranchStore none{false};
  EXPECT_EQ(code(none.config({.size_bytes = 4096})), EOPNOTSUPP);
  EXPECT_EQ(code(none.status()), EOPNOTSUPP);
  BranchStore store;
  EXPECT_EQ(code(store.status()), ENXIO);
  EXPECT_EQ(code(store.size()), ENXIO);
  EXPECT_EQ(code(store.get(0)), ENXIO);
  EXPECT_EQ(code(store.clear()), ENXIO);
  EXPECT_EQ(code(store.drain()), ENXIO);
  EXPECT_EQ(code(store.config({.size_bytes = 5})), EINVAL);
  EXPECT_EQ(code(store.config({.size_bytes = ~std::uint64_t{0}})), ENOMEM);
  ASSERT_EQ(code(store.config({.size_bytes = 240})), 0);
  EXPECT_EQ(code(store.get(0)), EINVAL);
  EXPECT_EQ(code(store.config({.size_bytes = 0})), 0);
  EXPECT_EQ(code(store.size()), ENXIO);
}

TEST(BranchStore, KnowsTheThreadsOfAProcessApart) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 4 * 24, .sched = true}));
  TraceConsumer& seven = store.listen_to(7);
  EXPECT_EQ(&store.listen_to(7), &seven);
  store.listen_to(8).consume(branches(100, 2));
  seven.consume(branches(200, 1));
  seven.consume_mark({.kind = MarkKind::kDeparts, .time_ns = 5, .at = {}});
  store.listen_to(8).consume(branches(102, 1));
  EXPECT_EQ(store.status()->lost, 1U);
  const auto entries = store.drain();
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 4U);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> seen;
  for (const BranchStore::Entry& entry : *entries) seen.emplace_back(entry.thread, entry.from);
  EXPECT_EQ(seen, (decltype(seen){{8, 101}, {7, 200}, {7, 0}, {8, 102}}));
  EXPECT_EQ((*entries)[2].qualifier, BtsQualifier::kTaskDeparts);
}

TEST(BranchStore, WrapsAtEverySizeAndCountsWhatItOverwrites) {
  for (std::uint64_t capacity = 1; capacity < 12; ++capacity) {
    BranchStore store;
    ASSERT_TRUE(store.config({.size_bytes = capacity * 24}));
    for (std::uint64_t total = 0; total < 40;) {
      store.consume(branches(total, total % 3 + 1));
      total += total % 3 + 1;
      const std::uint64_t kept = std::min(total, capacity);
      ASSERT_EQ(*store.size(), kept);
      ASSERT_EQ(store.status()->lost, total - kept);
      for (std::uint64_t i = 0; i < kept; ++i) ASSERT_EQ(store.get(i)->from, total - 1 - i);
      ASSERT_EQ(code(store.get(kept)), EINVAL);
    }
  }
}

TEST(BranchStore, ConfigAllocatesAndConfiguresAndZeroFrees) {
  BranchStore store;
  const StoreConfig config{.size_bytes = 240, .sched = true, .signal = 29};
  ASSERT_TRUE(store.config(config));
  store.consume(branches(1, 3));
  ASSERT_TRUE(store.config(config));  // A new configuration empties it.
  EXPECT_EQ(*store.size(), 0U);
  ASSERT_TRUE(store.config({}));
  EXPECT_EQ(code(store.size()), ENXIO);
  store.consume(branches(1, 3));  // Without a store, records are ignored.
}

TEST(BranchStore, StatusIsTheConfigurationInForce) {
  BranchStore store;
  const StoreConfig config{
      .size_bytes = 480, .sched = true, .overflow = StoreOverflow::kStream, .signal = 12};
  ASSERT_TRUE(store.config(config));
  EXPECT_EQ(store.status()->config, config);
}

TEST(BranchStore, SizeIsHowManyRecordsThereAreNow) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 3 * 24}));
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(*store.size(), std::min<std::uint64_t>(i, 3));
    store.consume(branches(i, 1));
  }
}

TEST(BranchStore, GetCountsFromTheNewest) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 3 * 24}));
  store.consume(branches(1, 4));
  EXPECT_EQ(store.get(0)->from, 4U);
  EXPECT_EQ(store.get(2)->from, 2U);
  EXPECT_EQ(code(store.get(3)), EINVAL);
}

TEST(BranchStore, ClearEmptiesIt) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 240}));
  store.consume(branches(1, 4));
  ASSERT_TRUE(store.clear());
  EXPECT_EQ(*store.size(), 0U);
  EXPECT_EQ(store.status()->config.size_bytes, 240U);
}

TEST(BranchStore, HasNoLargestSizeButWhatTheMachineGives) {
  BranchStore store;
  for (const std::uint64_t size : {24ULL, 1ULL << 20U, 1ULL << 30U})
    EXPECT_TRUE(store.config({.size_bytes = size})) << size;
  EXPECT_EQ(code(store.config({.size_bytes = ~std::uint64_t{0}})), ENOMEM);
  EXPECT_EQ(store.status()->config.size_bytes, 1ULL << 30U);  // The configuration is unchanged.
}

TEST(BranchStore, NotifiesAsItIsAskedTo) {
  for (const int signal : {0, 10, 29}) {
    BranchStore store;
    std::vector<int> told;
    store.on_notify([&](const StoreConfig& config) { told.push_back(config.signal); });
    ASSERT_TRUE(
        store.config({.size_bytes = 24, .overflow = StoreOverflow::kSignal, .signal = signal}));
    store.consume(branches(1, 3));
    EXPECT_EQ(told, std::vector{signal});
  }
}

TEST(BranchStore, DrainGivesAllOldestFirstAndEmpties) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 5 * 24}));
  store.consume(branches(10, 8));
  const auto all = store.drain();
  ASSERT_EQ(all->size(), 5U);
  EXPECT_EQ(all->front().from, 13U);
  EXPECT_EQ(all->back().from, 17U);
  EXPECT_EQ(*store.size(), 0U);
  store.consume(branches(30, 1));
  EXPECT_EQ(store.get(0)->from, 30U);
}

TEST(BranchStore, StopsAndNotifiesOnce) {
  BranchStore store;
  std::vector<int> signals;
  store.on_notify([&](const StoreConfig& config) { signals.push_back(config.signal); });
  ASSERT_TRUE(
      store.config({.size_bytes = 3 * 24, .overflow = StoreOverflow::kSignal, .signal = 29}));
  store.consume(branches(1, 3));
  EXPECT_TRUE(signals.empty());
  store.consume(branches(4, 5));
  EXPECT_EQ(signals, std::vector{29});
  EXPECT_TRUE(store.status()->stopped);
  EXPECT_EQ(store.status()->lost, 5U);
  EXPECT_EQ(store.get(0)->from, 3U);  // The oldest entries are kept.
  (void)store.drain();
  EXPECT_FALSE(store.status()->stopped);
  store.consume(branches(9, 4));
  EXPECT_EQ(signals.size(), 2U);
}

TEST(BranchStore, AStreamThatIsDrainedInTimeLosesNothing) {
  BranchStore store;
  std::uint64_t next = 1;
  store.on_notify([&](const StoreConfig&) {
    const auto entries = store.drain();
    for (const auto& entry : *entries) ASSERT_EQ(entry.from, next++);
  });
  ASSERT_TRUE(store.config({.size_bytes = 8 * 24, .overflow = StoreOverflow::kStream}));
  for (std::uint64_t i = 1; i < 1000; ++i) store.consume(branches(i, 1));
  EXPECT_EQ(store.status()->lost, 0U);
  EXPECT_EQ(next + *store.size(), 1000U);
  BranchStore slow;
  ASSERT_TRUE(slow.config({.size_bytes = 8 * 24, .overflow = StoreOverflow::kStream}));
  slow.consume(branches(1, 20));
  EXPECT_EQ(slow.status()->lost, 12U);
}

TEST(BranchStore, KeepsWhatItIsAskedToKeep) {
  const std::vector<TraceMark> marks{{MarkKind::kArrives, 5, 0, {}},
                                     {MarkKind::kLeftSystemCall, 0, -1, TraceeAddr{0x40}},
                                     {MarkKind::kCameBack, 0, -1, TraceeAddr{0x42}},
                                     {MarkKind::kPreempted, 9, 0, {}}};
  BranchStore plain;
  BranchStore all;
  BranchStore only_marks;
  ASSERT_TRUE(plain.config({.size_bytes = 2400}));
  ASSERT_TRUE(all.config({.size_bytes = 2400, .sched = true, .kernel = true}));
  ASSERT_TRUE(only_marks.config({.size_bytes = 2400, .trace = false, .sched = true}));
  TraceHub hub;
  for (BranchStore* store : {&plain, &all, &only_marks}) hub.add(*store);
  hub.consume(branches(1, 2));
  for (const TraceMark& mark : marks) hub.consume_mark(mark);
  const Record lost = gap(GapReason::kOverflow, {}, {}, 7);
  hub.consume({&lost, 1});
  EXPECT_EQ(*plain.size(), 3U);
  EXPECT_EQ(plain.get(0)->qualifier, BtsQualifier::kInvalid);
  EXPECT_EQ(plain.get(0)->timestamp, 7U);
  const auto entries = *all.drain();
  ASSERT_EQ(entries.size(), 7U);
  EXPECT_EQ(entries[2].qualifier, BtsQualifier::kTaskArrives);
  EXPECT_EQ(entries[2].timestamp, 5U);
  EXPECT_EQ(entries[3].to, pseudo_address(MarkKind::kLeftSystemCall).value());
  EXPECT_EQ(entries[4].from, pseudo_address(MarkKind::kCameBack).value());
  EXPECT_EQ(entries[5].qualifier, BtsQualifier::kTaskDeparts);
  EXPECT_EQ(*only_marks.size(), 2U);
}

TEST(BranchStore, KeepsTheLevelItIsAskedToKeep) {
  constexpr TraceeAddr kKernel{0xffff'ffff'8100'0000};
  const std::vector<Record> user{branch(TraceeAddr{1}, TraceeAddr{2})};
  const std::vector<Record> whole{branch(TraceeAddr{1}, TraceeAddr{2}),
                                  branch(TraceeAddr{3}, kKernel), branch(kKernel, kKernel + 1),
                                  branch(kKernel + 2, TraceeAddr{4})};
  const auto kept = [&](StoreLevel level) {
    BranchStore store;
    EXPECT_TRUE(store.config({.size_bytes = 240, .level = level}));
    store.consume(user);
    store.whole().consume(whole);
    std::vector<std::uint64_t> out;
    const auto entries = store.drain();
    for (const auto& entry : *entries) out.push_back(entry.from);
    return out;
  };
  EXPECT_EQ(kept(StoreLevel::kUser), (std::vector<std::uint64_t>{1}));
  EXPECT_EQ(kept(StoreLevel::kKernel),
            (std::vector<std::uint64_t>{3, kKernel.value(), kKernel.value() + 2}));
  EXPECT_EQ(kept(StoreLevel::kBoth),
            (std::vector<std::uint64_t>{1, 3, kKernel.value(), kKernel.value() + 2}));
}

TEST(BranchStore, TellsHowALossIsBounded) {
  BranchStore store;
  ASSERT_TRUE(store.config({.size_bytes = 240}));
  for (const LossBound bound : {LossBound::kExact, LossBound::kAtLeast, LossBound::kBatches}) {
    const Record lost = gap(GapReason::kOverflow, {}, {}, 3, bound);
    store.consume({&lost, 1});
    EXPECT_EQ(store.get(0)->bound, bound);
    EXPECT_EQ(store.get(0)->timestamp, 3U);
  }
}

TEST(BranchStore, SaysWhatIsMissingOfAThread) {
  BranchStore store;
  store.note_missing(7);  // Ignored, because no store is configured.
  ASSERT_TRUE(store.config({.size_bytes = 240, .level = StoreLevel::kBoth}));
  store.note_missing(8);
  const auto entries = store.drain();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().qualifier, arch::x86::BtsQualifier::kInvalid);
  EXPECT_EQ(entries->front().timestamp, 0U);
  EXPECT_EQ(entries->front().thread, 8U);
}

TEST(BranchStore, ConsumersOfOneThreadDoNotKnowOfEachOther) {
  BranchStore alone;
  ASSERT_TRUE(alone.config({.size_bytes = 10 * 24}));
  BranchStore small;
  BranchStore large;
  BranchStore full;
  ASSERT_TRUE(small.config({.size_bytes = 10 * 24}));
  ASSERT_TRUE(large.config({.size_bytes = 1000 * 24}));
  ASSERT_TRUE(full.config({.size_bytes = 24, .overflow = StoreOverflow::kSignal}));
  TraceHub hub;
  for (BranchStore* store : {&full, &small, &large}) hub.add(*store);
  for (std::uint64_t i = 1; i < 300; i += 7) {
    alone.consume(branches(i, 7));
    hub.consume(branches(i, 7));
  }
  EXPECT_EQ(*small.drain(), *alone.drain());
  EXPECT_EQ(*large.size(), 43U * 7);
  EXPECT_EQ(large.status()->lost, 0U);
  EXPECT_EQ(full.status()->lost, 43U * 7 - 1);
}

}  // namespace
}  // namespace backtrail::decoder
