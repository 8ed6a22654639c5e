// SPDX-License-Identifier: Apache-2.0
// Reverse execution by the server in `backtrail replay`, without record btrace.
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/gdb/on_program.hpp"
#include "test/support/effort.hpp"
#include "test/support/machine.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;

class Reverse : public ::testing::Test {
 protected:
  void SetUp() override { record("past"); }

  /// @param wrapper  A program that executes the recorder; none if empty.
  void record(const std::string& program, std::vector<std::string> arguments = {},
              const std::string& source = "cache", const std::string& wrapper = "",
              const std::string& values = "free") {
    const std::string backtrail = server_command(Peer::kUnderTest)[0];
    SpawnOptions options{.arguments = {backtrail, "record", "--source", source, "--values", values,
                                       "-o", core, "--", inferior(program)},
                         .environment = test_environment(),
                         .working_directory = folder.path()};
    if (!wrapper.empty()) options.arguments.insert(options.arguments.begin(), inferior(wrapper));
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    Subprocess recorded{options};
    ASSERT_TRUE(recorded.wait(deadline_in(std::chrono::seconds{60})));
    replay(program);
  }

  void replay(const std::string& program) {
    // A session kills all descendants of this process when it ends.
    gdb.reset();
    GdbOptions gdb_options;
    gdb_options.symbols = inferior(program);
    gdb_options.connect = false;
    gdb = std::make_unique<GdbSession>(std::move(gdb_options));
    const std::string backtrail = server_command(Peer::kUnderTest)[0];
    gdb->run(fmt::format("target remote | {} replay - {}", backtrail, core));
  }

  static std::string contents(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  /// Steps back by lines until a function shows; compilers split main's end into a varying number
  /// of lines.
  std::string step_back_into(const std::string& function) {
    constexpr int kMostLines = 5;
    std::string said;
    for (int i = 0; i < kMostLines && said.find(function) == std::string::npos; ++i) {
      said = gdb->run("reverse-step");
    }
    return said;
  }

  TemporaryFolder folder;
  const std::string core = folder / "crash.core";
  std::unique_ptr<GdbSession> gdb;
};

TEST_F(Reverse, StepsBackWithTheValuesOfVariables) {
  EXPECT_THAT(step_back_into("add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb->run("bt"), AllOf(HasSubstr("#0"), HasSubstr("add_up"), HasSubstr("main")));
  EXPECT_EQ(gdb->value("count"), "4");
  EXPECT_EQ(gdb->value("numbers[2]"), "3");
}

TEST_F(Reverse, StopsAtBreakpointsBothWays) {
  gdb->run("break deeper");
  for (const char* left : {"0", "1", "2", "3"}) {
    EXPECT_THAT(gdb->run("reverse-continue"), HasSubstr("Breakpoint 1, deeper"));
    EXPECT_EQ(gdb->value("left"), left);
  }
  EXPECT_THAT(gdb->run("bt"),
              AllOf(ContainsRegex("deeper .left=(left@entry=)?3"), HasSubstr("main")));
  EXPECT_THAT(gdb->run("continue"), HasSubstr("Breakpoint 1, deeper"));
  EXPECT_EQ(gdb->value("left"), "2");
  gdb->run("delete");
  EXPECT_THAT(gdb->run("reverse-finish"), ContainsRegex("in deeper .left=(left@entry=)?3"));
  EXPECT_THAT(gdb->run("continue"), at_an_end());
  // The thread is back at the end of its history.
  EXPECT_THAT(gdb->run("frame"), HasSubstr("main"));
  EXPECT_THAT(gdb->run("info registers rip"), HasSubstr("rip"));
  EXPECT_THAT(gdb->run("continue"), HasSubstr("The program died here"));
}

TEST_F(Reverse, StopsWhereWatchedDataWasWritten) {
  EXPECT_EQ(gdb->value("total"), "10");
  gdb->run("watch total");
  const std::vector<std::string> values{"10", "6", "3", "1"};
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    EXPECT_THAT(gdb->run("reverse-continue"),
                ContainsRegex("Old value = " + values[i] + "\nNew value = " + values[i + 1]));
    EXPECT_THAT(gdb->run("frame"), HasSubstr("add_up"));
  }
  // No instruction read the value before the first write, so it is not known.
  EXPECT_THAT(gdb->run("reverse-continue"), AllOf(HasSubstr("may have been written here"),
                                                  HasSubstr("New value = <unreadable>")));
  EXPECT_THAT(gdb->run("continue"), HasSubstr("may have been written here"));
  for (std::size_t i = values.size() - 1; i > 0; --i) {
    EXPECT_THAT(gdb->run("continue"),
                ContainsRegex("Old value = " + values[i] + "\nNew value = " + values[i - 1]));
  }
}

/// Going back from where the data became unknown to the beginning of the history.
TEST_F(Reverse, SaysWhereWritesCannotBeSeen) {
  gdb->run("watch total");
  std::string said;
  for (int i = 0; i < 4; ++i) said = gdb->run("reverse-continue");
  EXPECT_THAT(said, HasSubstr("may have been written here"));
  EXPECT_THAT(gdb->run("reverse-continue"),
              AllOf(HasSubstr("not known on a part of the way"), at_an_end()));
}

/// The part of the history without values is searched for breakpoints only.
TEST_F(Reverse, WatchesPassThePartWithoutValues) {
  if (kSanitized) GTEST_SKIP() << "goes through a million steps, which takes half a minute";
  gdb.reset();
  record("long_past");
  gdb->run("watch early");
  EXPECT_THAT(gdb->run("reverse-continue"),
              AllOf(HasSubstr("may have been written here"), HasSubstr("Old value = 5")));
  gdb->run("break mark");
  EXPECT_THAT(gdb->run("reverse-continue"),
              AllOf(HasSubstr("not known on a part of the way"), HasSubstr("Breakpoint 2, mark")));
  EXPECT_THAT(gdb->run("reverse-continue"), at_an_end());
  EXPECT_THAT(gdb->run("continue"), HasSubstr("Breakpoint 2, mark"));
  EXPECT_THAT(gdb->run("continue"),
              AllOf(HasSubstr("may have been written here"), HasSubstr("New value = 5")));
}

/// A read leaves no trace in memory, so it cannot be found again.
TEST_F(Reverse, GoesBackThroughCodeThatWasWrittenAgain) {
  record("rewritten_code", {}, "cache", "", "all");
  EXPECT_EQ(gdb->value("sum"), "21");
  gdb->run("watch sum");
  const std::vector<int> values{15, 10, 6, 3, 1, 0};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_THAT(gdb->run("reverse-continue"),
                ContainsRegex(fmt::format("New value = {}\n", values[i])));
    EXPECT_EQ(gdb->value("(int)addend"), std::to_string(values.size() - i));
  }
  // The first function of the page, which has another length than the last one.
  gdb->run("delete");
  EXPECT_THAT(gdb->run("reverse-stepi"), HasSubstr("in ?? ()"));
  EXPECT_THAT(gdb->run("x/i $pc"), HasSubstr("ret"));
  gdb->run("reverse-stepi");
  EXPECT_THAT(gdb->run("x/i $pc"), HasSubstr("lea"));
  EXPECT_THAT(gdb->run("reverse-stepi"), HasSubstr("main"));
}

TEST_F(Reverse, WatchesNoReads) {
  gdb->run("awatch total");
  EXPECT_THAT(gdb->run("reverse-continue"), HasSubstr("Could not insert hardware"));
}

TEST_F(Reverse, EndsWhereTheHistoryBegins) {
  EXPECT_THAT(gdb->run("reverse-continue"), at_an_end());
  EXPECT_THAT(gdb->run("reverse-stepi"), at_an_end());
  EXPECT_THAT(gdb->run("set var $rax = 1"), HasSubstr("cannot be changed"));
}

TEST_F(Reverse, RecordBtraceWantsTheEnd) {
  gdb->run("reverse-stepi");
  EXPECT_THAT(gdb->run("record btrace"), HasSubstr("is in its past"));
  gdb->run("stepi");
  EXPECT_THAT(gdb->run("record btrace"), Not(HasSubstr("is in its past")));
  EXPECT_THAT(step_back_into("add_up"), HasSubstr("add_up"));
  EXPECT_THAT(gdb->run("info args"), HasSubstr("<unavailable>"));
  // Without these commands gdb 13 continues from a pc that the server never had, and fails an
  // assertion of its own.
  gdb->run("record goto end");
  gdb->run("record stop");
  EXPECT_THAT(step_back_into("add_up"), HasSubstr("add_up"));
}

/// The kernel runs the call and, within the same step, the instruction after it.
TEST_F(Reverse, ShowsTheInstructionAfterACallOfTheVsyscallPage) {
  if (contents("/proc/self/maps").find("[vsyscall]") == std::string::npos) {
    GTEST_SKIP() << "the kernel has no vsyscall page";
  }
  gdb.reset();
  record("vsyscall");
  gdb->run("break *&after_call");
  EXPECT_THAT(gdb->run("reverse-continue"), HasSubstr("Breakpoint 1,"));
}

/// Pages that the process did not touch may have contents, which the core does not have.
TEST_F(Reverse, UntouchedPagesOfFilesAreNotShownAsZeros) {
  gdb.reset();
  record("untouched");
  EXPECT_EQ(gdb->value("large_shared[8*4096]"), "115 's'");
  EXPECT_EQ(gdb->value("large_private[8*4096]"), "115 's'");
  EXPECT_EQ(gdb->value("small_shared[3*4096]"), "117 'u'");
  EXPECT_EQ(gdb->value("small_private[3*4096]"), "117 'u'");
  EXPECT_THAT(gdb->run("output large_shared[200*4096]"), HasSubstr("annot access memory"));
  EXPECT_THAT(gdb->run("output large_private[200*4096]"), HasSubstr("annot access memory"));
  EXPECT_EQ(gdb->value("beyond_end[4096]"), "101 'e'");
  EXPECT_THAT(gdb->run("output beyond_end[2*4096]"), HasSubstr("annot access memory"));
}

/// As in files of versions that did not look for other writers, or not for all kinds of them.
TEST_F(Reverse, WithoutTheFactThatNobodyElseWroteOldMemoryIsUnknown) {
  const std::string whole = contents(core);
  for (const char* const fact : {"foreign-writes=none", "shared-memory="}) {
    SCOPED_TRACE(fact);
    gdb.reset();
    std::string bytes = whole;
    const std::size_t at = bytes.find(fact);
    ASSERT_NE(at, std::string::npos);
    bytes[at] = 'x';
    std::ofstream{core, std::ios::binary} << bytes;
    replay("past");
    EXPECT_EQ(gdb->value("total"), "10");
    EXPECT_THAT(step_back_into("add_up"), HasSubstr("add_up"));
    EXPECT_THAT(gdb->run("output total"), HasSubstr("annot access memory"));
  }
}

/// The value at mark() is shown as it was then, or as unknown, whatever the source.
class ReverseForeignWrites : public Reverse, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {}
  void expect_at_mark(const std::string& how, const std::string& expression,
                      const std::string& then, const std::string& wrapper = "") {
    // The dynamic linker would take most of the steps.
    const bool steps = GetParam() == std::string{"step"};
    record(steps ? "foreign_writes_static" : "foreign_writes", {how}, GetParam(), wrapper);
    EXPECT_EQ(gdb->value(expression), "77");
    gdb->run("break mark");
    EXPECT_THAT(gdb->run("reverse-continue"), HasSubstr("Breakpoint 1, mark"));
    EXPECT_THAT(gdb->run("output " + expression),
                AnyOf(Eq(then), HasSubstr("annot access memory")));
  }
};

TEST_P(ReverseForeignWrites, OfAProcessThatSharesTheMemoryAreNotTakenBack) {
  expect_at_mark("clone", "written", "1");
}

TEST_P(ReverseForeignWrites, AreNotTakenBackWhereTheKernelDoesNotTellWhoSharesMemory) {
  expect_at_mark("clone", "written", "1", "no_kcmp");
}

TEST_P(ReverseForeignWrites, OfAnotherRecordedProcessAreNotTakenBack) {
  expect_at_mark("fork", "written", "1");
}

TEST_P(ReverseForeignWrites, ThroughAFileThatIsTheMemoryAreNotTakenBack) {
  expect_at_mark("procmem", "written", "1");
}

TEST_P(ReverseForeignWrites, ThroughAnotherMappingAreNotTakenBack) {
  expect_at_mark("made", "alias[4]+0", "1");
}

TEST_P(ReverseForeignWrites, ThroughAFileOpenedByA32BitCallAreNotTakenBack) {
  if (!test::has_compat_calls()) GTEST_SKIP() << test::kNoCompatCalls;
  expect_at_mark("procmem32", "written", "1");
}

TEST_P(ReverseForeignWrites, ToReadOnlyMemoryAreNotTakenBack) {
  expect_at_mark("constant", "constant[0]+0", "1");
}

TEST_P(ReverseForeignWrites, MemoryThatBecameCodeIsNotTakenToBeALibrarys) {
  expect_at_mark("code", "page[4]+0", "1");
}

INSTANTIATE_TEST_SUITE_P(Sources, ReverseForeignWrites, ::testing::Values("cache", "step"),
                         [](const auto& source) { return std::string{source.param}; });

}  // namespace
}  // namespace backtrail::test
