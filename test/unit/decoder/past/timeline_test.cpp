// SPDX-License-Identifier: Apache-2.0
#include "decoder/past/timeline.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "decoder/past/step_index.hpp"
#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;

/// 1000: nop; nop; jmp 1010     1010: nop; call 1020; nop; nop     1020: nop; ret
std::vector<std::uint8_t> code() {
  std::vector<std::uint8_t> out(0x30, 0x90);
  out[2] = 0xeb;
  out[3] = 0x0c;
  const std::vector<std::uint8_t> call{0xe8, 0x0a, 0, 0, 0};
  std::copy(call.begin(), call.end(), out.begin() + 0x11);
  out[0x21] = 0xc3;
  return out;
}

class TimelineOf : public testing::Test {
 protected:
  Timeline& over(std::vector<Record> records, TraceeAddr pc) {
    records_.emplace(std::move(records));
    timeline_.emplace(insns_, *records_, pc);
    return *timeline_;
  }
  /// Returns every pc from the newest back to the oldest; 0 marks a gap.
  static std::vector<std::uint64_t> backwards(Timeline& timeline) {
    std::vector<std::uint64_t> out;
    for (PastPosition at = timeline.newest();;) {
      const auto move = timeline.back(at);
      if (!move) return out;
      if (move->crossed_gap) out.push_back(0);
      at = move->to;
      out.push_back(at.pc.value());
    }
  }
  static std::vector<std::uint64_t> forwards(Timeline& timeline) {
    PastPosition at = timeline.search_back(timeline.newest(), {}).at;
    std::vector<std::uint64_t> out{at.pc.value()};
    while (const auto move = timeline.forward(at)) {
      if (move->crossed_gap) out.push_back(0);
      at = move->to;
      out.push_back(at.pc.value());
    }
    return out;
  }

  FlatCode code_{0x1000_ta, code()};
  InsnCache insns_{code_};
  std::optional<VectorRecords> records_;
  std::optional<Timeline> timeline_;
  const std::vector<Record> plain_{gap(GapReason::kStart, 0_ta, 0x1000_ta),
                                   branch(0x1002_ta, 0x1010_ta), branch(0x1011_ta, 0x1020_ta),
                                   branch(0x1021_ta, 0x1016_ta)};
};

TEST_F(TimelineOf, AStretchGoesBackInstructionByInstruction) {
  Timeline& timeline = over(plain_, 0x1017_ta);
  EXPECT_EQ(timeline.newest().pc, 0x1017_ta);
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0x1016, 0x1021, 0x1020, 0x1011, 0x1010,
                                                             0x1002, 0x1001, 0x1000}));
}

TEST_F(TimelineOf, AStretchGoesForwardTheSameWay) {
  EXPECT_EQ(forwards(over(plain_, 0x1017_ta)),
            (std::vector<std::uint64_t>{0x1000, 0x1001, 0x1002, 0x1010, 0x1011, 0x1020, 0x1021,
                                        0x1016, 0x1017}));
}

TEST_F(TimelineOf, AThreadWithoutRecordsHasNoPast) {
  Timeline& timeline = over({}, 0x1000_ta);
  EXPECT_FALSE(timeline.back(timeline.newest()));
  EXPECT_FALSE(timeline.forward(timeline.newest()));
  EXPECT_FALSE(timeline.search_back(timeline.newest(), {0x1000_ta}).found);
  EXPECT_FALSE(timeline.search_forward(timeline.newest(), {0x1000_ta}).found);
}

TEST_F(TimelineOf, ASignalThatCameBeforeAnyInstructionLeavesAnEmptyBlock) {
  Timeline& timeline = over({gap(GapReason::kStart, 0_ta, 0x1000_ta), branch(0x1002_ta, 0x1010_ta),
                             async_transfer(0x1010_ta, 0x1020_ta)},
                            0x1021_ta);
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0x1020, 0x1002, 0x1001, 0x1000}));
  EXPECT_EQ(forwards(timeline),
            (std::vector<std::uint64_t>{0x1000, 0x1001, 0x1002, 0x1020, 0x1021}));
}

TEST_F(TimelineOf, CrossingAGapIsSaid) {
  Timeline& timeline = over({gap(GapReason::kStart, 0_ta, 0x1000_ta), branch(0x1002_ta, 0x1010_ta),
                             gap(GapReason::kOverflow, 0_ta, 0x1020_ta)},
                            0x1021_ta);
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0x1020, 0, 0x1002, 0x1001, 0x1000}));
  EXPECT_EQ(forwards(timeline),
            (std::vector<std::uint64_t>{0x1000, 0x1001, 0x1002, 0, 0x1020, 0x1021}));
}

TEST_F(TimelineOf, CodeThatCannotBeFollowedIsAGapInsideTheBlock) {
  // No straight line leads from 1000 to 1021.
  Timeline& timeline =
      over({gap(GapReason::kStart, 0_ta, 0x1000_ta), branch(0x1021_ta, 0x1010_ta)}, 0x1011_ta);
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0x1010, 0, 0x1021, 0x1001, 0x1000}));
  EXPECT_EQ(forwards(timeline),
            (std::vector<std::uint64_t>{0x1000, 0x1001, 0, 0x1021, 0x1010, 0x1011}));
}

TEST_F(TimelineOf, AnExecBeginsTheHistory) {
  Timeline& timeline = over({gap(GapReason::kStart, 0_ta, 0x1000_ta), branch(0x1002_ta, 0x1010_ta),
                             gap(GapReason::kExec, 0_ta, 0x1020_ta)},
                            0x1021_ta);
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0x1020}));
}

TEST_F(TimelineOf, ASearchForwardEndsWhereItIsTold) {
  Timeline& timeline = over(plain_, 0x1017_ta);
  const PastPosition begin = timeline.search_back(timeline.newest(), {}).at;
  const PastPosition end = timeline.search_forward(begin, {0x1020_ta}).at;
  EXPECT_EQ(timeline.search_forward(begin, {0x1011_ta}, end).at.pc, 0x1011_ta);
  for (const TraceeAddr beyond : {0x1020_ta, 0x1021_ta}) {
    const Timeline::Search search = timeline.search_forward(begin, {beyond}, end);
    EXPECT_FALSE(search.found);
    EXPECT_EQ(search.at, end);
  }
}

TEST_F(TimelineOf, SearchesFindTheNearestPlaceAndNotTheOneTheyBeginAt) {
  std::vector<Record> loop{gap(GapReason::kStart, 0_ta, 0x1020_ta)};
  for (int i = 0; i < 3; ++i) loop.push_back(branch(0x1021_ta, 0x1020_ta));
  Timeline& timeline = over(loop, 0x1021_ta);
  const std::set<TraceeAddr> stops{0x1020_ta};
  PastPosition at = timeline.newest();
  for (std::uint64_t block : {3U, 2U, 1U, 0U}) {
    const Timeline::Search search = timeline.search_back(at, stops);
    ASSERT_TRUE(search.found);
    EXPECT_EQ(search.at.pc, 0x1020_ta);
    EXPECT_EQ(search.at.block, block);
    at = search.at;
  }
  EXPECT_FALSE(timeline.search_back(at, stops).found);
  EXPECT_EQ(timeline.search_forward(at, stops).at.block, 1U);
  EXPECT_EQ(timeline.search_forward(at, {0x1000_ta}).at, timeline.newest());
}

TEST_F(TimelineOf, ASearchThatFindsNothingEndsAtTheOldestInstruction) {
  Timeline& timeline = over(plain_, 0x1017_ta);
  const Timeline::Search search = timeline.search_back(timeline.newest(), {0x5000_ta});
  EXPECT_FALSE(search.found);
  EXPECT_EQ(search.at.pc, 0x1000_ta);
  EXPECT_EQ(search.at.block, 0U);
}

/// The second signal comes before the first one's handler has executed anything.
TEST_F(TimelineOf, TheFirstOfTwoSignalsTellsWhereControlWas) {
  constexpr TraceeAddr kInterrupted = 0x1002_ta;
  Timeline& timeline =
      over({gap(GapReason::kStart, 0_ta, 0x1000_ta), async_transfer(kInterrupted, 0x1010_ta),
            async_transfer(0x1010_ta, 0x1020_ta)},
           0x1021_ta);
  StepIndex index{timeline, *records_, 100};
  ASSERT_EQ(index.steps(), 3U);
  const values::Window window = index.window(0, 3);
  ASSERT_EQ(window.events.size(), 2U);
  EXPECT_EQ(window.events[0].before, 2U);
  EXPECT_EQ(window.events[1].before, 2U);
  EXPECT_EQ(window.steps[1].next, kInterrupted);
}

TEST_F(TimelineOf, RecordedValuesBelongToTheStepsAtTheirPlaces) {
  Timeline& timeline = over(plain_, 0x1017_ta);
  const std::vector<ValueFact> facts{{.record = 0, .pc = 0x1001_ta, .value = 7, .kind = 3},
                                     {.record = 0, .pc = 0x1001_ta, .value = 8, .kind = 5},
                                     {.record = 1, .pc = 0x1001_ta, .value = 9, .kind = 3},
                                     {.record = 2, .pc = 0x1020_ta, .value = 10, .kind = 12}};
  StepIndex index{timeline, *records_, 100, std::nullopt, facts};
  const values::Window all = index.window(0, index.steps());
  // The third one's place was not executed.
  ASSERT_EQ(all.facts.size(), 3U);
  EXPECT_EQ(all.facts[0].step, 1U);
  EXPECT_EQ(all.facts[0].kind, 3U);
  EXPECT_EQ(all.facts[0].value, 7U);
  EXPECT_EQ(all.facts[1].kind, 5U);
  EXPECT_EQ(all.steps[all.facts[2].step].pc, 0x1020_ta);
  const values::Window part = index.window(1, 3);
  ASSERT_EQ(part.facts.size(), 2U);
  EXPECT_EQ(part.facts[0].step, 0U);
  EXPECT_TRUE(index.window(2, 3).facts.empty());
}

TEST_F(TimelineOf, ValuesAtASignalBelongToTheInterruptedPlace) {
  Timeline& timeline = over({gap(GapReason::kStart, 0_ta, 0x1000_ta),
                             async_transfer(0x1001_ta, 0x1010_ta), branch(0x1011_ta, 0x1020_ta)},
                            0x1021_ta);
  const std::vector<ValueFact> facts{
      // Recorded before an instruction that did not run: it may have been half done since.
      {.record = 0, .pc = 0x1001_ta, .value = 6, .kind = 3},
      {.record = 0, .pc = 0x1001_ta, .value = 1, .kind = arch::kFlagsKind},
      {.record = 0, .pc = 0x1001_ta, .value = 7, .kind = 3},
      {.record = 1, .pc = 0x1010_ta, .value = 8, .kind = 3}};
  StepIndex index{timeline, *records_, 100, std::nullopt, facts};
  const values::Window all = index.window(0, index.steps());
  ASSERT_EQ(all.events.size(), 1U);
  ASSERT_EQ(all.facts.size(), 3U);
  for (const values::Fact& fact : all.facts) EXPECT_EQ(fact.step, 1U);
  EXPECT_EQ(all.facts[0].kind, arch::kFlagsKind);
  EXPECT_EQ(all.facts[0].signal, 0U);
  EXPECT_EQ(all.facts[1].value, 7U);
  EXPECT_EQ(all.facts[1].signal, 0U);
  EXPECT_EQ(all.facts[2].value, 8U);
  EXPECT_EQ(all.facts[2].signal, values::Fact::kNoSignal);
}

/// The two no-ops at 1000 were one instruction before the code was written again: mov $5, %al.
TEST_F(TimelineOf, BlocksHaveTheInstructionsThatTheTraceTells) {
  constexpr auto kEightBytes = static_cast<arch::ValueKind>(arch::kCodeKind + 8);
  constexpr auto kTwoBytes = static_cast<arch::ValueKind>(arch::kCodeKind + 2);
  std::vector<ValueFact> facts;
  for (std::size_t at = 0; at < code().size(); at += 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, &code_.bytes()[at], sizeof value);
    facts.push_back({.record = 0, .pc = 0x1000_ta + at, .value = value, .kind = kEightBytes});
  }
  facts.push_back({.record = 0, .pc = 0x1000_ta, .value = 0x05b0, .kind = kTwoBytes});
  facts.push_back({.record = 2, .pc = 0x1000_ta, .value = 0x9090, .kind = kTwoBytes});
  CodeHistory told{arch::Isa::kAmd64, facts};
  records_.emplace(std::vector<Record>{gap(GapReason::kStart, 0_ta, 0x1000_ta),
                                       async_transfer(0x1002_ta, 0x1010_ta),
                                       branch(0x1011_ta, 0x1000_ta), branch(0x1002_ta, 0x1010_ta)});
  Timeline timeline{insns_, *records_, 0x1011_ta, &told};
  EXPECT_EQ(backwards(timeline),
            (std::vector<std::uint64_t>{0x1010, 0x1002, 0x1001, 0x1000, 0x1011, 0x1010, 0x1000}));
  StepIndex index{timeline, *records_, 100, std::nullopt, facts};
  const values::Window all = index.window(0, index.steps());
  EXPECT_TRUE(all.facts.empty());
  ASSERT_EQ(all.steps.size(), 7U);
  for (const values::Step& step : all.steps) ASSERT_NE(step.code, nullptr);
  EXPECT_EQ(all.steps[0].code->facts.length, 2U);
  EXPECT_EQ(all.steps[3].code->facts.length, 1U);
  ASSERT_EQ(all.events.size(), 1U);
  ASSERT_NE(all.events[0].code, nullptr);
  EXPECT_EQ(all.events[0].code->facts.kind, arch::InsnKind::kJump);
}

/// The bytes at 1001 are not told: the instruction there may have had another length.
TEST_F(TimelineOf, NearCodeThatIsToldOtherCodeIsAGap) {
  constexpr auto kOneByte = static_cast<arch::ValueKind>(arch::kCodeKind + 1);
  const std::vector<ValueFact> facts{
      {.record = 0, .pc = 0x1000_ta, .value = 0x90, .kind = kOneByte},
      {.record = 0, .pc = 0x1002_ta, .value = 0x0ceb, .kind = kOneByte + 1}};
  CodeHistory told{arch::Isa::kAmd64, facts};
  records_.emplace(
      std::vector<Record>{gap(GapReason::kStart, 0_ta, 0x1000_ta), branch(0x1002_ta, 0x1010_ta)});
  Timeline timeline{insns_, *records_, 0x1010_ta, &told};
  EXPECT_EQ(backwards(timeline), (std::vector<std::uint64_t>{0, 0x1002, 0x1000}));
  StepIndex index{timeline, *records_, 100, std::nullopt, facts};
  const values::Window all = index.window(0, index.steps());
  ASSERT_EQ(all.steps.size(), 2U);
  EXPECT_NE(all.steps[0].code, nullptr);
  EXPECT_NE(all.steps[1].code, nullptr);
  ASSERT_EQ(all.events.size(), 1U);
  EXPECT_EQ(all.events[0].kind, values::EventKind::kGap);
}

}  // namespace
}  // namespace backtrail::decoder
