// SPDX-License-Identifier: Apache-2.0
// Reports on programs that rewrite their code: they show what was executed, not what memory has at
// the end.
#include <gmock/gmock.h>

#include "report_fixture.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class RewrittenCode : public ReportFixture {};

/// One place held a function that calls, one that jumps, and one that calls again.
TEST_F(RewrittenCode, CallsAreThoseThatWereMade) {
  for (const char* values : {"free", "most", "all"}) {
    run({BT_SERVER, "record", "--values=" + std::string{values}, "-o", "x.core", "--",
         std::string{BT_INFERIOR_DIR} + "/rewritten_calls"},
        -1);
    EXPECT_THAT(report(), ContainsRegex("\n      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "        first\n"
                                        "      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "      second  \\(tail call\\)\n"
                                        "      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "        third\n"
                                        "  => SIGSEGV at main"));
  }
  const std::string folded = report({"--folded"});
  EXPECT_THAT(folded, ContainsRegex(";main;0x[0-9a-f]+;first [0-9]"));
  EXPECT_THAT(folded, ContainsRegex(";main;second [0-9]"));
  for (const char* format : {"--speedscope", "--perfetto"}) {
    EXPECT_THAT(report({format}), HasSubstr("third")) << format;
  }
}

TEST_F(RewrittenCode, ThePageShowsTheInstructionsThatWereExecuted) {
  record("rewritten_calls");
  EXPECT_THAT(report({"--html"}), AllOf(HasSubstr("\"callq *%rdi\""), HasSubstr("\"jmpq *%rdi\"")));
}

}  // namespace
}  // namespace backtrail::test
