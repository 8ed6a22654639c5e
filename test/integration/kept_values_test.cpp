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
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::uint8_t kRsi = 6;
constexpr std::uint8_t kRdi = 7;
constexpr std::uint64_t kCount = 20000;  ///< Stores of one round of `tallies`.

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

/// Judges the values of rsi and rdi at the stores of tally().
class Judge {
 public:
  /// `exact`: only the stores' own branches come between two of them.
  explicit Judge(bool exact) : exact_{exact} {}

  void look_at(const Collector& thread) {
    last_.reset();
    for (const decoder::ValueFact& fact : thread.facts) {
      if (fact.pc == tally_ && fact.reg == kRsi) {
        look_at_number(fact);
      } else if (fact.pc == tally_ && fact.reg == kRdi) {
        const std::uint64_t cell = (fact.value - cells_.value()) / sizeof(std::uint64_t);
        EXPECT_TRUE(fact.value >= cells_.value() && cell % kCount == 0) << fact.value;
      }
    }
  }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }

 private:
  void look_at_number(const decoder::ValueFact& fact) {
    ++seen_;
    // A store may have been stepped, which records nothing.
    constexpr std::uint64_t kMostLeftOut = 10;
    EXPECT_LT(fact.value, kCount);
    if (!last_ || fact.value <= last_->value) {
      EXPECT_LT(fact.value, kMostLeftOut);
    } else {
      EXPECT_LE(fact.value - last_->value, kMostLeftOut);
      if (exact_) {
        EXPECT_EQ(fact.record - last_->record, fact.value - last_->value);
      }
    }
    last_ = fact;
  }

  TraceeAddr tally_ = symbol_of("tallies", "at_tally");
  TraceeAddr cells_ = symbol_of("tallies", "cells");
  bool exact_;
  std::optional<decoder::ValueFact> last_;
  std::uint64_t seen_ = 0;
};

/// Judges the values of rsi at the stores of the handler. Returns their number.
std::uint64_t judge_handler(const Collector& thread) {
  const TraceeAddr handled = symbol_of("tallies", "at_handled");
  std::uint64_t seen = 0;
  std::optional<std::uint64_t> last;
  for (const decoder::ValueFact& fact : thread.facts) {
    if (fact.pc != handled || fact.reg != kRsi) continue;
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
    Judge judge{!has_signals};
    std::uint64_t handled = 0;
    for (const auto& thread : ran.outcome.threads) {
      judge.look_at(*thread);
      handled += judge_handler(*thread);
    }
    EXPECT_GE(judge.seen(), GetParam().rounds * kCount * 99 / 100);
    if (has_signals) {
      EXPECT_GE(handled, 18U);
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
  const auto store = std::make_shared<cache::PersistentStore>("");
  const CountedRun first = run(store, "threads");
  const CountedRun second = run(store, "threads");
  EXPECT_LT(second.sums->misses, first.sums->misses);
  Judge judge{true};
  for (const auto& thread : second.outcome.threads) judge.look_at(*thread);
  EXPECT_GE(judge.seen(), 12 * kCount * 99 / 100);
}

TEST(PersistentCode, OfBothDepthsIsKept) {
  const test::TemporaryFolder folder;
  const auto ran = [&](ValueDepth values) {
    return run(std::make_shared<cache::PersistentStore>(folder / "kept"), "threads", values);
  };
  const CountedRun free = ran(ValueDepth::kFree);
  const CountedRun most = ran(ValueDepth::kMost);
  EXPECT_EQ(free.sums->values, 0U);
  EXPECT_GT(most.sums->values, 12 * kCount);
  // Neither depth finds the other's translations.
  EXPECT_GT(most.sums->superblocks * 2, free.sums->superblocks);
  for (int i = 0; i < 2; ++i) {
    const CountedRun free_again = ran(ValueDepth::kFree);
    const CountedRun most_again = ran(ValueDepth::kMost);
    EXPECT_EQ(free_again.sums->values, 0U);
    EXPECT_LT(free_again.sums->misses, free.sums->misses);
    EXPECT_LT(most_again.sums->misses, most.sums->misses);
    EXPECT_GT(most_again.sums->values, 12 * kCount);
  }
}

}  // namespace
}  // namespace backtrail::tracee
