// SPDX-License-Identifier: Apache-2.0
// Retranslation by profile leaves the records unchanged.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"

namespace backtrail::tracee {
namespace {

class CacheHabits : public testing::TestWithParam<int> {};

TEST_P(CacheHabits, TheTailEqualsTheSteppedOneRecordByRecord) {
  const Outcome stepped =
      run_recorded({.source = SourceKind::kStep, .program = "habits", .from = "tail"});
  const auto made_better = [](const Outcome& outcome) {
    return outcome.statistics.find("retranslated by profile") != std::string::npos;
  };
  const auto recorded = [] {
    return run_recorded(
        {.program = "habits", .stops = GetParam(), .from = "main", .statistics_every = 1});
  };
  // Retry until superblocks were retranslated, or the test is empty: a log that interruptions
  // empty may never fill up.
  Outcome cached = recorded();
  for (int again = 0; again < 4 && !made_better(cached); ++again) cached = recorded();
  EXPECT_TRUE(stepped.exited_with(0));
  EXPECT_TRUE(cached.exited_with(0));
  EXPECT_TRUE(made_better(cached)) << cached.statistics;
  // The first records are the gap where recording began.
  const auto& steps = stepped.records();
  const auto first = std::find_if(steps.begin(), steps.end(), [](const decoder::Record& record) {
    return record.kind == decoder::RecordKind::kBranch;
  });
  const std::span wanted{first, steps.end()};
  const auto& all = cached.records();
  ASSERT_GT(wanted.size(), 1000U);
  ASSERT_GT(all.size(), 100 * wanted.size());
  const auto begin = all.end() - static_cast<std::ptrdiff_t>(wanted.size());
  const auto [found, expected] = std::mismatch(begin, all.end(), wanted.begin());
  ASSERT_EQ(found, all.end()) << "record " << expected - wanted.begin() << " of " << wanted.size()
                              << std::hex << ": " << found->from.value() << " -> "
                              << found->to.value() << ", stepped " << expected->from.value()
                              << " -> " << expected->to.value();
}

INSTANTIATE_TEST_SUITE_P(Interrupted, CacheHabits, testing::Values(0, 300));

TEST(CacheHabits, AreTheSameWithAndWithoutInterruptions) {
  const Outcome quiet = run_recorded({.program = "habits", .from = "main"});
  const Outcome disturbed = run_recorded({.program = "habits", .stops = 300, .from = "main"});
  ASSERT_EQ(quiet.records().size(), disturbed.records().size());
  const auto [one, other] =
      std::mismatch(quiet.records().begin(), quiet.records().end(), disturbed.records().begin());
  EXPECT_EQ(one, quiet.records().end()) << "record " << one - quiet.records().begin();
}

TEST(ExitProfile, FindsTheTargetThatMostHave) {
  cache::ExitProfile profile;
  std::vector<std::uint32_t> log;
  for (std::uint32_t i = 0; i < 40000; ++i) log.push_back(i % 10 < 8 ? 1 : 2);
  const auto target_of = [](std::uint32_t exit, std::uint32_t next) -> std::optional<TraceeAddr> {
    return exit == 1 ? std::optional{TraceeAddr{next}} : std::nullopt;
  };
  EXPECT_FALSE(profile.due());
  for (int i = 0; i < 100 && !profile.due(); ++i) profile.sample(log, target_of);
  ASSERT_TRUE(profile.due());
  const auto& one = profile.counts().at(1);
  const auto& two = profile.counts().at(2);
  EXPECT_NEAR(static_cast<double>(one.seen) / two.seen, 4, 0.8);
  EXPECT_EQ(one.target, TraceeAddr{1});
  EXPECT_NEAR(static_cast<double>(one.majority) / one.seen, 0.75, 0.15);
  EXPECT_EQ(two.majority, 0U);
}

TEST(ExitProfile, LooksAtFewerLogsWhenTheyTellNothingNew) {
  cache::ExitProfile profile;
  const std::vector<std::uint32_t> log(5000, 3);
  const auto nowhere = [](std::uint32_t, std::uint32_t) { return std::optional<TraceeAddr>{}; };
  const auto logs_until_due = [&] {
    int logs = 0;
    for (; !profile.due(); ++logs) profile.sample(log, nowhere);
    return logs;
  };
  const int first = logs_until_due();
  profile.begin_again(false);
  EXPECT_GT(logs_until_due(), first);
  profile.begin_again(true);
  EXPECT_EQ(logs_until_due(), first);
}

}  // namespace
}  // namespace backtrail::tracee
