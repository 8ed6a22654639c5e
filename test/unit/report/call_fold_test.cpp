// SPDX-License-Identifier: Apache-2.0
// Tests folded call trees. Names are function ids as letters; dashes are levels.
#include "decoder/report/call_fold.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using ::testing::ElementsAre;

/// Makes calls from names with dashes for depth: "a", "-b", "--c".
std::vector<Call> calls(const std::vector<std::string>& lines) {
  std::vector<Call> out;
  std::vector<std::size_t> stack;
  for (const std::string& line : lines) {
    const std::size_t depth = line.find_first_not_of('-');
    const auto id = static_cast<std::uint32_t>(line[depth] - 'a' + 1);
    Call call;
    call.function = {id, TraceeAddr{std::uint64_t{id} * 0x100U}, false};
    call.site = TraceeAddr{id};
    call.end = CallEnd::kReturned;
    call.depth = static_cast<std::uint32_t>(depth);
    stack.resize(depth);
    call.parent = stack.empty() ? kNoCall : stack.back();
    call.begin_position = out.size() + 1;
    stack.push_back(out.size());
    out.push_back(call);
  }
  return out;
}

std::vector<std::string> folded(const std::vector<Call>& calls,
                                const std::vector<GapMark>& gaps = {},
                                const std::vector<OffMark>& offs = {}) {
  std::vector<std::string> out;
  for (const FoldedRow& row : fold_calls(calls, gaps, offs)) {
    std::string line(row.level, '-');
    switch (row.kind) {
      case FoldedRow::Kind::kCall:
        line += static_cast<char>('a' + calls[row.index].function.id - 1);
        break;
      case FoldedRow::Kind::kRepeat:
        line += "times";
        break;
      case FoldedRow::Kind::kGap:
        line += "gap";
        break;
      case FoldedRow::Kind::kOff:
        line += "off";
        break;
      case FoldedRow::Kind::kRounds:
        line += fmt::format("rounds of {}", row.round);
        break;
    }
    if (row.repeat != 1) line += fmt::format(" x{}", row.repeat);
    if (row.nested != 1) line += fmt::format(" deep{}", row.nested);
    if (row.round != 0 && row.calls != row.round * row.repeat)
      line += fmt::format(" calls{}", row.calls);
    out.push_back(line);
  }
  return out;
}

TEST(CallFold, TimesOffTheCpuStandInTheCallTheyHappenedIn) {
  auto tree = calls({"a", "-b", "--c", "-b", "--c", "-d"});
  const std::vector<std::uint64_t> ends{20, 4, 4, 6, 6, 10};
  for (std::size_t i = 0; i < ends.size(); ++i) tree[i].end_position = ends[i];
  // In the first c; after it, in a; in d, which begins at 6; after everything.
  const std::vector<OffMark> offs{{.position = 3, .ns = 10},
                                  {.position = 4, .ns = 10},
                                  {.position = 7, .ns = 10},
                                  {.position = 30, .ns = 10}};
  EXPECT_THAT(folded(tree, {}, offs),
              ElementsAre("a", "-b", "--c", "---off", "-b", "--off", "--c", "-d", "--off", "off"));
  EXPECT_THAT(folded({}, {}, {{.position = 1, .ns = 1000}, {.position = 1, .ns = 1001}}),
              ElementsAre("off x2"));
}

TEST(CallFold, NothingFoldsWhereNothingRepeats) {
  EXPECT_THAT(folded(calls({"a", "-b", "--c", "-d"})), ElementsAre("a", "-b", "--c", "-d"));
  EXPECT_THAT(folded({}), ElementsAre());
}

TEST(CallFold, ARunOfTheSameCallIsOne) {
  EXPECT_THAT(folded(calls({"a", "-b", "-b", "-b", "-c"})), ElementsAre("a", "-b x3", "-c"));
}

TEST(CallFold, WithWhatItCalls) {
  EXPECT_THAT(folded(calls({"a", "-b", "--c", "-b", "--c", "-b", "--d"})),
              ElementsAre("a", "-b x2", "--c", "-b", "--d"));
}

TEST(CallFold, ASequenceThatRepeats) {
  EXPECT_THAT(folded(calls({"a", "-b", "-c", "-b", "-c", "-b", "-c", "-d"})),
              ElementsAre("a", "-times x3", "--b", "--c", "-d"));
}

TEST(CallFold, SequencesOfRuns) {
  EXPECT_THAT(folded(calls({"a", "-b", "-b", "-c", "-b", "-b", "-c"})),
              ElementsAre("a", "-times x2", "--b x2", "--c"));
}

TEST(CallFold, AFunctionThatCallsItself) {
  EXPECT_THAT(folded(calls({"a", "-b", "--b", "---b", "----c"})),
              ElementsAre("a", "-b deep3", "--c"));
}

TEST(CallFold, FunctionsThatCallEachOther) {
  EXPECT_THAT(folded(calls({"m", "-a", "--b", "---a", "----b", "-----a", "------b", "-------c"})),
              ElementsAre("m", "-a", "--b", "---rounds of 2 x2", "----c"));
  // A partial round remains inside, with everything that its last call did.
  EXPECT_THAT(folded(calls({"a", "-b", "--c", "---a", "----b", "-----c", "------a", "-------b",
                            "--------c", "---------a", "----------d", "----------e"})),
              ElementsAre("a", "-b", "--c", "---rounds of 3 x2", "----a", "-----d", "-----e"));
  // Two rounds are no circle yet.
  EXPECT_THAT(folded(calls({"a", "-b", "--a", "---b"})), ElementsAre("a", "-b", "--a", "---b"));
  // Whole circles repeat as any call does.
  EXPECT_THAT(folded(calls({"m", "-a", "--b", "---a", "----b", "-----a", "------b", "-a", "--b",
                            "---a", "----b", "-----a", "------b"})),
              ElementsAre("m", "-a x2", "--b", "---rounds of 2 x2"));
}

TEST(CallFold, ACircleIsOfTheSameCallsOnly) {
  const std::vector<std::string> lines{"m", "-a", "--b", "---a", "----b", "-----a", "------b"};
  const std::vector<std::string> whole{"m", "-a", "--b", "---a", "----b", "-----a", "------b"};
  auto another_place = calls(lines);
  another_place[3].site = TraceeAddr{77};
  EXPECT_EQ(folded(another_place), whole);
  auto another_end = calls(lines);
  another_end[4].end = CallEnd::kUnwound;
  EXPECT_EQ(folded(another_end), whole);
  // The outermost call may have another call site.
  auto from_elsewhere = calls(lines);
  from_elsewhere[1].site = TraceeAddr{77};
  EXPECT_EQ(folded(from_elsewhere).size(), 4U);
  // A call that does more than call the next one is shown.
  EXPECT_THAT(folded(calls({"a", "-b", "--a", "---c", "---b", "----a", "-----b", "------a"})),
              ElementsAre("a", "-b", "--a", "---c", "---b", "----a", "-----b", "------a"));
}

TEST(CallFold, RoundsWithOtherCallsBeside) {
  // A parser: p peeks at the input, f calls itself through g.
  EXPECT_THAT(folded(calls({"m", "-f", "--p", "--g", "---p", "---f", "----p", "----g", "-----p",
                            "-----f", "------p", "------g", "-------p", "-------f", "--------q"})),
              ElementsAre("m", "-f", "--p", "--g", "---p", "---rounds of 2 x2 calls7", "----p",
                          "----f", "-----q"));
}

TEST(CallFold, RoundsWhoseCallsBesideDifferInNumber) {
  // Sorting: p calls c for each comparison, then both parts are sorted.
  const auto tree = calls({"m", "-s", "--p", "---c", "---c", "---c", "--s", "---p", "----c",
                           "----c", "---s", "----p", "-----c", "----s", "----s", "---s", "--s"});
  const std::vector<std::string> rows{
      "m", "-s", "--p", "---c x3", "--rounds of 1 x2 calls6", "---p", "----c", "---s x2", "--s"};
  EXPECT_EQ(folded(tree), rows);
  // The call site may differ, but only of calls that have returned: open ones are the stack.
  auto other_site = tree;
  other_site[10].site = TraceeAddr{77};
  EXPECT_EQ(folded(other_site), rows);
  for (const std::size_t open : {1U, 6U, 10U, 13U}) other_site[open].end = CallEnd::kOpen;
  EXPECT_EQ(folded(other_site).size(), 14U);
}

TEST(CallFold, ARecursionGoesOnByTheFunctionItselfNotByTheDeepestCall) {
  EXPECT_THAT(folded(calls({"m", "-s", "--p", "---q", "----r", "--s", "---p", "----q", "-----r",
                            "---s", "----p", "-----q", "------r"})),
              ElementsAre("m", "-s", "--p", "---q", "----r", "--rounds of 1 x2 calls5", "---p",
                          "----q", "-----r"));
}

TEST(CallFold, WaitsAreNotFoldedIntoRounds) {
  auto tree = calls({"m", "-f", "--p", "--f", "---p", "---f", "----p", "----f"});
  EXPECT_EQ(folded(tree).size(), 4U);
  for (Call& call : tree) call.end_position = 100;
  for (const std::size_t p : {2U, 4U, 6U}) tree[p].end_position = tree[p].begin_position + 1;
  EXPECT_THAT(folded(tree, {}, {{.position = 5, .ns = 10}}), ::testing::Contains("----off"));
}

TEST(CallFold, GapsStandWhereTheyWere) {
  std::vector<Call> all = calls({"a", "b"});
  EXPECT_THAT(folded(all, {{{}, 2}}), ElementsAre("a", "gap", "b"));
  EXPECT_THAT(folded(all, {{{}, 9}}), ElementsAre("a", "b", "gap"));
}

TEST(CallFold, DeepStacksTakeNoStackOfOurs) {
  constexpr std::uint32_t kDeep = 200000;
  const auto deep = [](std::uint32_t names) {
    std::vector<Call> all(kDeep);
    for (std::size_t i = 0; i < kDeep; ++i) {
      all[i].function.id = 1 + static_cast<std::uint32_t>(i) % names;
      all[i].parent = i == 0 ? kNoCall : i - 1;
      all[i].begin_position = i;
    }
    return fold_calls(all, {}).size();
  };
  EXPECT_EQ(deep(kDeep), kDeep);
  EXPECT_EQ(deep(9), kDeep);  // Rounds longer than kMostPeriod.
  EXPECT_EQ(deep(1), 1U);
  EXPECT_EQ(deep(2), 3U);
  EXPECT_EQ(deep(3), 6U);  // Includes two calls of a partial round.
}

}  // namespace
}  // namespace backtrail::decoder
