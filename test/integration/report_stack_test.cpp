// SPDX-License-Identifier: Apache-2.0
// The stack in reports if callers began long before the branches that a report reads: the same
// functions as in gdb on the same file.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "report_fixture.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Names = std::vector<std::string>;

/// Returns the expression's first group in each line, in order.
Names found_in(const std::string& text, const std::regex& wanted) {
  Names out;
  std::istringstream lines{text};
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, found, wanted)) out.push_back(found[1].str());
  }
  return out;
}

class ReportStack : public test::ReportFixture {
 protected:
  static bool exists(const std::string& program) {
    return std::filesystem::exists(std::string{BT_INFERIOR_DIR} + "/" + program);
  }
  /// Returns the unfinished calls of the thread that died, innermost first, up to main: its callers
  /// have other names in other C libraries.
  Names in_report() {
    std::string text = report();
    text = text.substr(0, text.find("\n  => SIG"));
    Names names = found_in(text, std::regex{"^  > +([^ ]+)"});
    std::reverse(names.begin(), names.end());
    return up_to_main(std::move(names));
  }
  Names in_gdb(const std::string& program) {
    const std::string text =
        run({"gdb", "-nx", "-q", "-batch", std::string{BT_INFERIOR_DIR} + "/" + program, "x.core",
             "-ex", "bt"});
    // gdb first prints the innermost frame alone.
    Names names = found_in(text.substr(text.rfind("\n#0 ") + 1),
                           std::regex{"^#[0-9]+ +(?:0x[0-9a-f]+ in )?([^ ]+) \\("});
    return up_to_main(std::move(names));
  }
  static Names up_to_main(Names names) {
    const auto main = std::find(names.begin(), names.end(), "main");
    if (main != names.end()) names.erase(main + 1, names.end());
    // Drops the function that starts a thread, which has no name where the C library has no
    // symbols.
    const auto starter = std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return name == "start_thread" || name == "??";
    });
    names.erase(starter, names.end());
    return names;
  }
};

struct Case {
  const char* program;
  const char* how;
};

class ReportStackLikeGdb : public ReportStack, public ::testing::WithParamInterface<Case> {};

TEST_P(ReportStackLikeGdb, HasTheSameFunctions) {
  if (!has("gdb")) GTEST_SKIP() << "no gdb here";
  const auto& [program, how] = GetParam();
  record(program, {how});
  const Names names = in_report();
  EXPECT_THAT(report(), ContainsRegex("in the last [0-9,]+ of [0-9,]+ recorded branches"));
  EXPECT_GE(names.size(), 3U);
  EXPECT_EQ(names, in_gdb(program));
}

constexpr Case kCases[] = {
    {"stacks", "chain"},
    {"stacks", "roomy"},
    {"stacks", "left"},
    {"stacks", "handler"},
    {"stacks_fast", "chain"},
    {"stacks_fast", "roomy"},
    {"stacks_fast", "handler"},
    {"stacks_fast", "other-stack"},
    {"stacks_fast", "thread"},
    {"stacks_fast", "waiting"},
    {"stacks_no_pie", "chain"},
    {"stacks_no_pie", "other-stack"},
    {"stacks_static", "other-stack"},
    {"stacks_static", "handler"},
    {"stacks_static_pie", "chain"},
    {"stacks_static_pie", "roomy"},
};
INSTANTIATE_TEST_SUITE_P(Programs, ReportStackLikeGdb,
                         ::testing::ValuesIn(test::every(2, std::vector(std::begin(kCases),
                                                                        std::end(kCases)))),
                         [](const auto& each) {
                           std::string name =
                               std::string{each.param.program} + "_" + each.param.how;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_F(ReportStack, MarksWhatOnlyTheStackTells) {
  record("stacks_fast", {"chain"});
  EXPECT_THAT(report(), AllOf(ContainsRegex("  > +main( .*)?  \\(from the stack\\)\n"
                                            "  > +outer  stacks.c:[0-9]+  \\(from the stack\\)\n"
                                            "  > +inner  stacks.c:[0-9]+  \\(from the stack\\)\n"
                                            "  > +die  stacks.c:[0-9]+\n"),
                              Not(HasSubstr("cannot be unwound"))));
  EXPECT_THAT(report({"--json"}),
              AllOf(HasSubstr("\"stack_complete\":true"),
                    ContainsRegex("\"function\":\"outer\",\"file\":\"[^\"]*\",\"line\":[0-9]+,"
                                  "\"begin\":\"unseen\",\"end\":\"open\",\"stack\":true")));
}

TEST_F(ReportStack, AllOfItIsThereWithoutATrace) {
  if (!has("gdb")) GTEST_SKIP() << "no gdb here";
  run({"gdb", "-nx", "-q", "-batch", std::string{BT_INFERIOR_DIR} + "/stacks_fast", "-ex",
       "run chain 3", "-ex", "generate-core-file x.core"},
      -1);
  if (!std::filesystem::exists(folder / "x.core")) GTEST_SKIP() << "gdb cannot write cores here";
  const std::string text = report();
  EXPECT_THAT(text, AllOf(HasSubstr("the file contains no trace"),
                          ContainsRegex("  > +die  stacks.c:[0-9]+  \\(from the stack\\)\n")));
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "main"}));
}

TEST_F(ReportStack, AJumpLeavesNoCaller) {
  record("stacks_fast", {"jumps"});
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "jumped_to", "main"}));
}

TEST_F(ReportStack, FoldsDeepRecursion) {
  record("stacks_fast", {"deep"});
  EXPECT_THAT(report(), ContainsRegex("  > +deep  stacks.c:[0-9]+  recursive, 100,00[01] deep  "
                                      "\\(from the stack\\)\n  > +outer "));
  record("stacks_fast", {"circle"});
  EXPECT_THAT(report(), ContainsRegex("  > +ping .*\n  > +pong .*\n  > +\\.\\.\\. [0-9]+ more "
                                      "rounds of ping, pong \\.\\.\\.  \\(from the stack\\)\n"));
}

TEST_F(ReportStack, CallersOfACallToNowhereAreFound) {
  record("stacks_fast", {"nowhere"});
  EXPECT_EQ(in_report(), (Names{"0x0", "to_nowhere", "main"}));
}

TEST_F(ReportStack, ALibraryWithoutSymbolsIsNoObstacle) {
  record("stacks_fast", {"sort"});
  const Names names = in_report();
  ASSERT_GE(names.size(), 5U);
  EXPECT_EQ(names[2], "outer");
  EXPECT_EQ(names[3], "compare");
  EXPECT_EQ(names.back(), "main");
}

TEST_F(ReportStack, WhatADyingThreadsOthersAreIn) {
  record("stacks_fast", {"waiting"});
  const std::string text = report();
  const std::string others = text.substr(text.find("\n  => SIG"));
  EXPECT_THAT(others, ContainsRegex("  > +waiting .*\\(from the stack\\)\n(.*\n)*"
                                    "  > +wait_for_ever  stacks.c:[0-9]+"));
}

/// Where the stack was overwritten, the report says so and shows nothing read from there.
TEST_F(ReportStack, NothingIsTakenFromASmashedStack) {
  record("stacks_fast", {"smashed"});
  EXPECT_THAT(report(), HasSubstr("the stack cannot be unwound beyond smash: its return address "
                                  "0x4141414141414141 follows no call\n"));
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "smash"}));
  record("stacks_fast", {"smashed-zeros"});
  EXPECT_THAT(report(), HasSubstr("the stack cannot be unwound beyond smash_with_zeros: the return "
                                  "address is 0 or unreadable\n"));
  record("stacks_fast", {"smashed-code"});
  EXPECT_THAT(report(),
              ContainsRegex("beyond smash_with_code: its return address 0x[0-9a-f]+ follows no"));
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "smash_with_code"}));
  record("stacks_fast", {"smashed-above"});
  EXPECT_THAT(in_report(), ::testing::Contains("smash"));
}

/// The whole run was recorded: the calls are known, and the stack contradicts them.
TEST_F(ReportStack, TheCallsWinWhereTheStackContradicts) {
  record("stacks_fast", {"smashed", "3"});
  EXPECT_THAT(report(),
              HasSubstr("the stack contradicts the trace: smash was called from main, but "
                        "the stack has 0x4141414141414141 there"));
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "smash", "main"}));
}

TEST_F(ReportStack, SaysWhereThereIsNoUnwindInformation) {
  record("stacks_untold", {"chain"});
  EXPECT_THAT(report(), ContainsRegex("the stack cannot be unwound beyond [^\n]*: there is no "
                                      "unwind information for it\n"));
  EXPECT_EQ(in_report().size(), 1U);
}

TEST_F(ReportStack, AStackMadeByHandEndsWhereItBegins) {
  record("stacks_fast", {"switched"});
  EXPECT_EQ(in_report(), (Names{"die", "inner", "outer", "other_body"}));
}

TEST_F(ReportStack, Of32BitPrograms) {
  if (!exists("stacks32_static")) GTEST_SKIP() << "no 32-bit programs here";
  // Stepping has time for few branches; the report is told to read few.
  record("stacks32_static", {"handler", "14"}, "step");
  std::string text = report({"--branches", "100"});
  text = text.substr(0, text.find("\n  => SIG"));
  Names names = found_in(text, std::regex{"^  > +([^ ]+)"});
  std::reverse(names.begin(), names.end());
  EXPECT_EQ(up_to_main(std::move(names)),
            (Names{"die", "inner", "outer", "handle", "fault", "main"}));
}

}  // namespace
}  // namespace backtrail::tracee
