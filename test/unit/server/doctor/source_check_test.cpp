// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/source_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/doctor/known_program.hpp"

namespace backtrail::server {
namespace {

using decoder::branch;
using decoder::GapReason;
using decoder::Record;
using testing::HasSubstr;
using tracee::SourceKind;

const std::vector<Record> step_records{
    branch(TraceeAddr{0x10}, TraceeAddr{0x20}), branch(TraceeAddr{0x22}, TraceeAddr{0x10}),
    branch(TraceeAddr{0x10}, TraceeAddr{0x20}), branch(TraceeAddr{0x26}, TraceeAddr{0x30}),
    branch(TraceeAddr{0x34}, TraceeAddr{0x10})};
const Record loss = decoder::gap(GapReason::kOverflow, TraceeAddr{}, TraceeAddr{0x20});

TEST(SourceCheck, AllOfItIsEqual) {
  const SourceCheck check = compare_with_step(SourceKind::kCache, step_records, step_records);
  EXPECT_TRUE(check.equal);
  EXPECT_EQ(check.words, "equal in all 5 branches");
}

TEST(SourceCheck, NamesTheFirstDifference) {
  std::vector<Record> wrong = step_records;
  wrong[3].to = TraceeAddr{0x31};
  const SourceCheck check = compare_with_step(SourceKind::kPerfBts, step_records, wrong);
  EXPECT_FALSE(check.equal);
  EXPECT_EQ(check.words,
            "differs at branch 4 of 5: step 0x26 -> 0x30; it 0x26 -> 0x31, 0 gaps in all");
}

TEST(SourceCheck, TooFewTooManyAndGapsDiffer) {
  std::vector<Record> other = step_records;
  other.pop_back();
  EXPECT_THAT(compare_with_step(SourceKind::kPerfPt, step_records, other).words,
              HasSubstr("branch 5 of 5: step 0x34 -> 0x10; it has no more"));
  other = step_records;
  other.push_back(step_records.front());
  EXPECT_THAT(compare_with_step(SourceKind::kPerfPt, step_records, other).words,
              HasSubstr("step has no more; it 0x10 -> 0x20"));
  other = step_records;
  other.insert(other.begin() + 2, loss);
  const SourceCheck check = compare_with_step(SourceKind::kPerfPt, step_records, other);
  EXPECT_FALSE(check.equal);
  EXPECT_THAT(check.words, HasSubstr("1 gaps in all"));
}

TEST(SourceCheck, StretchesHaveToFollowEachOther) {
  const std::vector<Record> stretches{step_records[1], step_records[2], loss, step_records[4],
                                      loss};
  const SourceCheck check = compare_with_step(SourceKind::kLbr, step_records, stretches);
  EXPECT_TRUE(check.equal);
  EXPECT_EQ(check.words, "right in 3 of 5 branches, in 2 stretches");
  const std::vector<Record> out_of_order{step_records[3], loss, step_records[1]};
  EXPECT_FALSE(compare_with_step(SourceKind::kLbr, step_records, out_of_order).equal);
}

TEST(KnownProgram, ComputesTheSameTwice) {
  EXPECT_EQ(run_known_program(), 0);
  EXPECT_NE(known_span().begin, known_span().end);
}

}  // namespace
}  // namespace backtrail::server
