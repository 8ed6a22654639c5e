// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/monitor_bts.hpp"

#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::server::handlers {
namespace {

using decoder::BranchStore;
using testing::HasSubstr;

std::string run(BranchStore& store, const std::string& line) {
  std::vector<std::string> words;
  std::istringstream text{line};
  for (std::string word; text >> word;) words.push_back(word);
  const std::vector<std::string_view> views{words.begin(), words.end()};
  const auto out = run_bts_command(store, views);
  return out ? *out : out.error().message();
}

void feed(BranchStore& store, std::uint64_t count) {
  for (std::uint64_t i = 1; i <= count; ++i) {
    const decoder::Record record = decoder::branch(TraceeAddr{i * 16}, TraceeAddr{i * 16 + 16});
    store.consume({&record, 1});
  }
}

TEST(MonitorBts, RunsEveryOperation) {
  BranchStore store;
  EXPECT_EQ(run(store, "config size=72"),
            "size 72 bytes, 0 records, 0 lost\ntrace, overflow wrap\n");
  feed(store, 4);
  EXPECT_EQ(run(store, "size"), "3 records\n");
  EXPECT_EQ(run(store, "get 0"), "branch  0x40 -> 0x50\n");
  EXPECT_EQ(run(store, "get 2"), "branch  0x20 -> 0x30\n");
  EXPECT_THAT(run(store, "status"), HasSubstr("3 records, 1 lost"));
  EXPECT_EQ(run(store, "drain"),
            "branch  0x20 -> 0x30\nbranch  0x30 -> 0x40\nbranch  0x40 -> 0x50\n3 records\n");
  feed(store, 1);
  EXPECT_EQ(run(store, "clear"), "cleared\n");
  EXPECT_EQ(run(store, "size"), "0 records\n");
  EXPECT_EQ(run(store, "config size=0"), "freed\n");
}

TEST(MonitorBts, SaysHowALossIsBounded) {
  using decoder::LossBound;
  BranchStore store;
  run(store, "config size=240");
  for (const LossBound bound : {LossBound::kExact, LossBound::kAtLeast, LossBound::kBatches}) {
    const auto lost = decoder::gap(decoder::GapReason::kOverflow, {}, {}, 3, bound);
    store.consume({&lost, 1});
  }
  EXPECT_EQ(run(store, "get 2"), "gap of 3 records\n");
  EXPECT_EQ(run(store, "get 1"), "gap of at least 3 records\n");
  EXPECT_EQ(run(store, "get 0"), "gap of 3 batches of records\n");
}

TEST(MonitorBts, TakesTheFlagsOfAConfiguration) {
  BranchStore store;
  EXPECT_EQ(
      run(store, "config size=240 sched kernel overflow=signal signal=29"),
      "size 240 bytes, 0 records, 0 lost\ntrace, sched, kernel, overflow signal, signal 29\n");
  feed(store, 11);
  EXPECT_THAT(run(store, "status"), HasSubstr("10 records, 1 lost, stopped"));
  EXPECT_THAT(run(store, "config size=240 notrace overflow=stream"),
              HasSubstr("notrace, overflow stream"));
  const std::vector<std::string_view> sched{"config", "size=1", "sched"};
  EXPECT_TRUE(wants_sched(sched));
  EXPECT_FALSE(wants_sched(std::span{sched}.first(2)));
  EXPECT_THAT(run(store, "config size=240 level=both"), HasSubstr("overflow wrap, level both"));
  const std::vector<std::string_view> kernel{"config", "size=1", "level=kernel"};
  EXPECT_TRUE(wants_kernel(kernel));
  EXPECT_FALSE(wants_kernel(sched));
  const std::vector<std::string_view> stream{"config", "size=1", "overflow=stream"};
  EXPECT_TRUE(wants_stream(stream));
  EXPECT_FALSE(wants_stream(sched));
  EXPECT_TRUE(makes_store(sched));
  EXPECT_FALSE(makes_store(std::vector<std::string_view>{"config", "size=0"}));
  EXPECT_FALSE(makes_store(std::vector<std::string_view>{"drain"}));
}

TEST(MonitorBts, NamesTheThreadsOfAProcess) {
  BranchStore store;
  ASSERT_THAT(run(store, "config size=240 sched"), HasSubstr("sched"));
  const decoder::Record record = decoder::branch(TraceeAddr{0x10}, TraceeAddr{0x20});
  store.listen_to(41).consume({&record, 1});
  store.listen_to(42).consume_mark({.kind = decoder::MarkKind::kArrives, .time_ns = 9, .at = {}});
  EXPECT_EQ(run(store, "drain"),
            "branch  0x10 -> 0x20, thread 41\narrives at 9 ns, thread 42\n2 records\n");
  const std::vector<std::string_view> line{"process", "size"};
  std::span<const std::string_view> words{line};
  EXPECT_TRUE(take_process(words));
  EXPECT_EQ(words.front(), "size");
  EXPECT_FALSE(take_process(words));
}

TEST(MonitorBts, SaysWhatIsWrong) {
  BranchStore store;
  EXPECT_THAT(run(store, "size"), HasSubstr("No such device or address"));
  EXPECT_THAT(run(store, "config size=5"), HasSubstr("Invalid argument"));
  EXPECT_THAT(run(store, "config size=99999999999999999999"), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, "config size=18446744073709551615"), HasSubstr("Cannot allocate memory"));
  EXPECT_THAT(run(store, "config"), HasSubstr("size=BYTES is missing"));
  EXPECT_THAT(run(store, "config size=240 sideways"), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, "config size=240 overflow=no"), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, "config size=240 level=none"), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, "config size=240 signal=0"), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, ""), HasSubstr("invalid argument"));
  EXPECT_THAT(run(store, "get"), HasSubstr("invalid argument"));
  ASSERT_THAT(run(store, "config size=240"), HasSubstr("size 240"));
  EXPECT_THAT(run(store, "get 0"), HasSubstr("Invalid argument"));
  EXPECT_THAT(run(store, "get x"), HasSubstr("invalid argument"));
  BranchStore none{false};
  EXPECT_THAT(run(none, "status"), HasSubstr("Operation not supported"));
}

}  // namespace
}  // namespace backtrail::server::handlers
