// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/vcont_parser.hpp"

#include <csignal>

#include <gtest/gtest.h>

namespace backtrail::server::handlers {
namespace {

using tracee::ResumeKind;

TEST(VContParser, ReadsEveryAction) {
  const auto actions = parse_vcont("c:p1.1;C1e:p1.2;s:p1.3;S02:p1.4;t:p1.5;r10,1f:p1.6");
  ASSERT_TRUE(actions);
  ASSERT_EQ(actions->size(), 6U);
  EXPECT_EQ((*actions)[0].action.kind, ResumeKind::kContinue);
  EXPECT_EQ((*actions)[1].action.kind, ResumeKind::kContinue);
  EXPECT_EQ((*actions)[1].action.signal, SIGUSR1);
  EXPECT_EQ((*actions)[2].action.kind, ResumeKind::kStep);
  EXPECT_EQ((*actions)[3].action.kind, ResumeKind::kStep);
  EXPECT_EQ((*actions)[3].action.signal, SIGINT);
  EXPECT_EQ((*actions)[4].action.kind, ResumeKind::kStop);
  EXPECT_EQ((*actions)[5].action.kind, ResumeKind::kRangeStep);
  EXPECT_EQ((*actions)[5].action.range_begin, TraceeAddr{0x10});
  EXPECT_EQ((*actions)[5].action.range_end, TraceeAddr{0x1f});
  EXPECT_EQ((*actions)[5].threads, (ThreadPattern{1, 6}));
}

TEST(VContParser, TheLeftmostActionWins) {
  const auto actions = parse_vcont("s:p1.2;c:p1.-1");
  ASSERT_TRUE(actions);
  ASSERT_NE(action_for(*actions, {1, 2}), nullptr);
  EXPECT_EQ(action_for(*actions, {1, 2})->kind, ResumeKind::kStep);
  EXPECT_EQ(action_for(*actions, {1, 3})->kind, ResumeKind::kContinue);
  EXPECT_EQ(action_for(*actions, {2, 2}), nullptr);
}

TEST(VContParser, AnActionWithoutThreadIsForAllOthers) {
  const auto actions = parse_vcont("c;s:p1.2");
  ASSERT_TRUE(actions);
  EXPECT_EQ(action_for(*actions, {1, 2})->kind, ResumeKind::kStep);
  EXPECT_EQ(action_for(*actions, {1, 3})->kind, ResumeKind::kContinue);
}

TEST(VContParser, RefusesMalformedActions) {
  for (const char* bad :
       {"",   ";",   "c;", ";c",  "q",       "C",  "Cxx",   "C8f",  "S",     "r",
        "r1", "r1,", "c:", "c:x", "c:p1.1x", "cx", "s:p1.", "C05x", "r1,2x", "C100"}) {
    EXPECT_FALSE(parse_vcont(bad)) << bad;
  }
}

}  // namespace
}  // namespace backtrail::server::handlers
