// SPDX-License-Identifier: Apache-2.0
// Values that kept translations record, of threads, children and handlers: `tallies` makes stores
// whose registers follow from their number.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "test/support/own_affinity.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint8_t kRsi = 6;
constexpr std::uint8_t kRdi = 7;
constexpr std::uint64_t kCount = 20000;  ///< Stores of one round of `tallies`.

/// Threads go round in their rings, which hold four fifths of the values of four rounds.
constexpr std::uint64_t least_judged(std::uint64_t rounds) {
  return rounds * kCount * 4 / 5;
}

struct CountedRun {
  Outcome outcome;
  std::shared_ptr<SourceStatistics> sums = std::make_shared<SourceStatistics>();
};

CountedRun run(std::shared_ptr<cache::PersistentStore> store, const std::string& how,
               ValueDepth values = ValueDepth::kMost) {
  CountedRun ran;
  ran.outcome =
      run_recorded({.program = "tallies",
                    .arguments = {how},
                    .values = values,
                    .threads = true,
                    .forks = true,
                    .kept = std::move(store),
                    .sums = ran.sums,
                    // The log would not hold all that comes between many signals.
                    .at_stop = [](EngineDriver&, Thread& thread) { thread.trace()->flush(); }});
  EXPECT_TRUE(ran.outcome.exited_with(0));
  return ran;
}

/// Counts the stores of tally() by a thread's branches.
class Stores {
 public:
  void see(const decoder::Record& record) {
    if (record.kind == decoder::RecordKind::kGap) {
      number_.reset();
    } else if (record.to == function_) {
      number_ = 0;
    } else if (number_ && record.from == loop_ + kBranchAt && record.to == loop_) {
      ++*number_;
    }
  }
  /// Returns the number of the store that comes next; nullopt if that is not known.
  [[nodiscard]] std::optional<std::uint64_t> number() const { return number_; }
  [[nodiscard]] TraceeAddr loop() const { return loop_; }

 private:
  static constexpr std::uint64_t kBranchAt = 15;  ///< Offset of the branch in the loop.

  TraceeAddr function_ = symbol_of("tallies", "tally");
  TraceeAddr loop_ = symbol_of("tallies", "at_tally");
  std::optional<std::uint64_t> number_;
};

/// Judges the values of rsi and rdi at the stores of tally(). Returns the number of those of rsi.
std::uint64_t judge(const Collector& thread) {
  const TraceeAddr cells = symbol_of("tallies", "cells");
  Stores stores;
  std::size_t next = 0;
  std::uint64_t judged = 0;
  for (const decoder::ValueFact& fact : thread.facts) {
    while (next <= fact.record) stores.see(thread.all.at(next++));
    if (fact.pc != stores.loop()) continue;
    if (fact.kind == kRdi) {
      const std::uint64_t cell = (fact.value - cells.value()) / sizeof(std::uint64_t);
      EXPECT_TRUE(fact.value >= cells.value() && cell % kCount == 0) << fact.value;
    } else if (fact.kind == kRsi && stores.number()) {
      EXPECT_EQ(fact.value, *stores.number());
      ++judged;
    }
  }
  return judged;
}

/// Judges the values of rsi at the stores of the handler. Returns their number.
std::uint64_t judge_handler(const Collector& thread) {
  const TraceeAddr handled = symbol_of("tallies", "at_handled");
  std::uint64_t seen = 0;
  std::optional<std::uint64_t> last;
  for (const decoder::ValueFact& fact : thread.facts) {
    if (fact.pc != handled || fact.kind != kRsi) continue;
    if (last) {
      EXPECT_GT(fact.value, *last);
    }
    last = fact.value;
    ++seen;
  }
  EXPECT_LE(seen, last ? *last + 1 : 0);
  return seen;
}

struct Way {
  const char* how;
  std::uint64_t rounds;  ///< Least number of rounds of stores, in all threads.
};

class KeptValuesOf : public testing::TestWithParam<Way> {};

TEST_P(KeptValuesOf, FollowFromTheNumbersOfTheStores) {
  const test::TemporaryFolder folder;
  const bool has_signals = GetParam().how == std::string{"signals"};
  std::uint64_t first_blocks = 0;
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const CountedRun ran =
        run(std::make_shared<cache::PersistentStore>(folder / "kept"), GetParam().how);
    std::uint64_t judged = 0;
    std::uint64_t handled = 0;
    for (const auto& thread : ran.outcome.threads) {
      judged += judge(*thread);
      handled += judge_handler(*thread);
    }
    EXPECT_GE(judged, least_judged(GetParam().rounds));
    if (has_signals) {
      // Before a signal that comes late the ring goes round: the handler before it is lost.
      EXPECT_GE(handled, 10U);
    }
    if (i == 0) {
      first_blocks = ran.sums->superblocks;
    } else {
      EXPECT_LT(ran.sums->superblocks * 2, first_blocks);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, KeptValuesOf,
                         testing::Values(Way{"threads", 12}, Way{"children", 15},
                                         Way{"signals", 3}),
                         [](const auto& way) { return std::string{way.param.how}; });

TEST(KeptValuesInMemory, AreUsedByTheNextProcess) {
  const test::OneCpu misses_by_stops;
  const auto store = std::make_shared<cache::PersistentStore>("");
  const CountedRun first = run(store, "threads");
  const CountedRun second = run(store, "threads");
  EXPECT_LT(second.sums->misses, first.sums->misses);
  std::uint64_t judged = 0;
  for (const auto& thread : second.outcome.threads) judged += judge(*thread);
  EXPECT_GE(judged, least_judged(12));
}

TEST(PersistentCode, OfEachDepthIsKept) {
  const test::OneCpu misses_by_stops;
  const test::TemporaryFolder folder;
  const auto ran = [&](ValueDepth values) {
    return run(std::make_shared<cache::PersistentStore>(folder / "kept"), "threads", values);
  };
  const CountedRun free = ran(ValueDepth::kFree);
  const CountedRun most = ran(ValueDepth::kMost);
  const CountedRun all = ran(ValueDepth::kAll);
  EXPECT_EQ(free.sums->values, 0U);
  EXPECT_GT(most.sums->values, 12 * kCount);
  // The translations of one depth are not found by the other.
  EXPECT_GT(most.sums->superblocks * 2, free.sums->superblocks);
  EXPECT_GT(all.sums->superblocks * 2, free.sums->superblocks);
  EXPECT_GT(all.sums->values, most.sums->values);
  for (int i = 0; i < 2; ++i) {
    const CountedRun free_again = ran(ValueDepth::kFree);
    const CountedRun most_again = ran(ValueDepth::kMost);
    const CountedRun all_again = ran(ValueDepth::kAll);
    EXPECT_LT(all_again.sums->misses, all.sums->misses);
    EXPECT_GT(all_again.sums->values, most_again.sums->values);
    EXPECT_EQ(free_again.sums->values, 0U);
    EXPECT_LT(free_again.sums->misses, free.sums->misses);
    EXPECT_LT(most_again.sums->misses, most.sums->misses);
    EXPECT_GT(most_again.sums->values, 12 * kCount);
  }
}

}  // namespace
}  // namespace backtrail::tracee
