// SPDX-License-Identifier: Apache-2.0
// `backtrail record` does not change the program's output, exit status, signals or children.

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "record_fixture.hpp"
#include "test/support/effort.hpp"
#include "test/support/own_affinity.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RecordIsTransparent : public testing::TestWithParam<Words> {};

TEST_P(RecordIsTransparent, OutputAndStatusAreTheProgramsOwn) {
  const Ran native = run(GetParam());
  const Ran recorded = record(with({"--"}, GetParam()));
  EXPECT_EQ(recorded.status, native.status);
  EXPECT_EQ(recorded.output, native.output);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RecordIsTransparent,
    testing::Values(Words{"true"}, Words{"false"}, Words{"/bin/echo", "a  b", "", "c"},
                    shell("exit 42"), shell("kill -TERM $$"), shell("kill -KILL $$"),
                    shell("kill -SEGV $$"),
                    shell("trap 'echo caught; exit 7' USR1; kill -USR1 $$; echo not reached"),
                    shell("echo one; /bin/echo two; (exit 5); echo $?"),
                    shell("for i in 1 2 3; do /bin/echo $i; done | /bin/cat"),
                    shell("(kill -ABRT $$) & wait $!; echo $?"), shell("exec /bin/echo after exec"),
                    shell("echo $0 $#; ps -o stat= -p $$ >/dev/null; echo ok"),
                    Words{BT_INFERIOR_DIR "/threads"}, Words{BT_INFERIOR_DIR "/forks"},
                    Words{BT_INFERIOR_DIR "/throws"}, Words{BT_INFERIOR_DIR "/plain_static"}));

TEST(Record, ProgramsThatSetTheTrapFlagTrap) {
  const Words program{BT_INFERIOR_DIR "/own_steps"};
  const Ran native = run(program);
  ASSERT_EQ(native.status, 0) << native.output;
  for (const char* source : {"cache", "step", "none"}) {
    const Ran recorded = record(with({"--source", source, "--"}, program));
    EXPECT_EQ(recorded.status, 0) << source << "\n" << recorded.output;
  }
}

TEST(Record, AttachesNoStringToTheName) {
  EXPECT_EQ(record({"--", "sh", "-c", "echo $0"}).output, "sh\n");
}

TEST(Record, WhatCannotStartEndsAsInAShell) {
  const Ran missing = record({"--", "/nonexistent/program"});
  EXPECT_EQ(missing.status, 127);
  EXPECT_THAT(missing.output, StartsWith("backtrail: /nonexistent/program: No such file"));
  EXPECT_EQ(record({"--", "/etc/passwd"}).status, 126);
  EXPECT_EQ(record({}).status, 1);
}

TEST(Record, SignalsToItReachTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const auto process = start(
        with({BT_BACKTRAIL, "record", "--"}, shell("trap 'echo got it; exit 9' INT TERM HUP QUIT; "
                                                   "echo ready; while :; do :; done")));
    ASSERT_TRUE(process->output().find("ready", 0, deadline_in(kRecordPatience)));
    process->signal(signal);
    const Ran ran = finish(*process);
    EXPECT_EQ(ran.status, 9) << signal;
    EXPECT_EQ(ran.output, "ready\ngot it\n");
  }
}

TEST(Record, DiesOfTheSignalThatItPassedOn) {
  const auto process = start({BT_BACKTRAIL, "record", "--", BT_INFERIOR_DIR "/spin"});
  while (live_descendants().size() < 2) {
  }
  process->signal(SIGTERM);
  EXPECT_EQ(finish(*process).status, 1000 + SIGTERM);
}

TEST(Record, ChildrenThatAreLeftGoOnWithoutIt) {
  const auto process = start(with({BT_BACKTRAIL, "record", "--"},
                                  shell("exec 3<&0; (read line <&3; echo left $line) & exit 3")));
  EXPECT_EQ(finish(*process).status, 3);
  process->write("alone\n");
  EXPECT_TRUE(process->output().find("left alone\n", 0, deadline_in(kRecordPatience)));
}

TEST(Record, FollowsAChildThatSharesTheMemoryAsAProcess) {
  const TemporaryFolder folder;
  const Ran ran = record(
      {"--stats", "-o", folder / "x.core", "--", BT_INFERIOR_DIR "/foreign_writes", "clone"});
  EXPECT_THAT(ran.output, HasSubstr("processes, threads     2, 2\n"));
}

TEST(Record, StatisticsCountWhatRan) {
  const Ran ran = record(with({"--stats", "--ring", "1M", "--"}, shell("/bin/true; /bin/true")));
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, HasSubstr("processes, threads     3, 3\n"));
  for (const char* name : {"branches taken", "instructions", "log bytes", "misses", "fallback",
                           "reading logs", "stepped instructions"}) {
    EXPECT_THAT(ran.output, HasSubstr(std::string{"backtrail: "})) << name;
    EXPECT_THAT(ran.output, HasSubstr(name));
  }
}

/// Returns the count that `--stats` prints under a name; -1 if there is none.
long counted(const Ran& ran, const std::string& name) {
  const auto at = ran.output.find("backtrail: " + name + " ");
  return at == std::string::npos
             ? -1
             : std::strtol(ran.output.c_str() + at + name.size() + std::size("backtrail:"), nullptr,
                           10);
}

TEST(Record, StatisticsOfStepsAreThoseOfTheCache) {
  const auto by = [](const char* source) {
    return record({"--source", source, "--stats", "--", BT_INFERIOR_DIR "/plain_static"});
  };
  const Ran stepped = by("step");
  const Ran translated = by("cache");
  EXPECT_GT(counted(stepped, "branches taken"), 100);
  for (const char* name : {"branches taken", "instructions"}) {
    EXPECT_EQ(counted(stepped, name), counted(translated, name)) << name;
  }
  EXPECT_EQ(counted(stepped, "stepped instructions"), counted(stepped, "instructions"));
}

TEST(Record, CodeIsMappedWithoutAStop) {
  const Ran ran = record({"--stats", "--", BT_INFERIOR_DIR "/maps_code", "200"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_LT(counted(ran, "stepped instructions"), 100) << "each mmap() was stepped";
}

TEST(Record, CodeThatIsMappedIsExecutedByAllThreads) {
  for (int i = 0; i < 3; ++i) {
    const Ran ran = record({"--", BT_INFERIOR_DIR "/maps_code", "threads"});
    EXPECT_EQ(ran.status, 0) << ran.output;
  }
}

TEST(Record, RunsNothingWhereTheCpuDoesNotRecord) {
  const TemporaryFolder folder;
  for (const char* source : {"perf-pt", "perf-bts", "lbr"}) {
    const Ran ran = record({"--source", source, "-o", folder / "core", "--", "echo", "ran"});
    if (ran.status == 0) continue;  // this machine has the source
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.output, StartsWith(std::string{"backtrail: "} + source + ": "));
    EXPECT_THAT(ran.output, Not(HasSubstr("ran\n")));
    EXPECT_THAT(ran.output, HasSubstr("--source cache works here"));
  }
}

TEST(Record, ChildrenBeginWithWhatTheirParentHasTranslated) {
  const OneCpu misses_by_stops;
  const auto misses = [](const std::string& children) {
    const Ran ran = run({"env", "BACKTRAIL_KEEP=0", BT_BACKTRAIL, "record", "--stats", "--",
                         BT_INFERIOR_DIR "/prefork", children});
    EXPECT_EQ(ran.status, 0);
    return counted(ran, "misses");
  };
  const long alone = misses("0");
  ASSERT_GT(alone, 100);
  EXPECT_LT(misses("8"), alone * 3 / 2);
}

TEST(Record, TranslatesBehindAContainersFilter) {
  for (const std::string filter : {"container", "kills"}) {
    const Ran ran = run({BT_INFERIOR_DIR "/filtered", filter, BT_BACKTRAIL, "record", "--stats",
                         "--", BT_INFERIOR_DIR "/plain_static"});
    EXPECT_EQ(ran.status, run({BT_INFERIOR_DIR "/plain_static"}).status) << filter;
    EXPECT_EQ(ran.output.find("all of a thread: seccomp") == std::string::npos,
              filter == "container")
        << ran.output;
  }
}

TEST(Record, CoresBehindAContainersFilterAreNotLonger) {
  const TemporaryFolder folder;
  for (const char* name : {"first", "second", "third"}) {
    EXPECT_EQ(run({BT_INFERIOR_DIR "/filtered", "container", BT_BACKTRAIL, "record", "--on",
                   "always", "-o", folder / name, "--", "/bin/true"})
                  .status,
              0);
    EXPECT_LT(std::filesystem::file_size(folder / name), 64U << 20U);
  }
}

TEST(Record, TranslatesBehindFiltersOfTheProgramsOwn) {
  // The last filter leaves no way to memory that two processes share.
  for (const std::string filter : {"container", "kills", "reads"}) {
    const Ran ran = record(
        {"--stats", "--", BT_INFERIOR_DIR "/filtered", filter, BT_INFERIOR_DIR "/plain_static"});
    EXPECT_EQ(ran.status, run({BT_INFERIOR_DIR "/plain_static"}).status) << filter;
    EXPECT_EQ(ran.output.find("all of a thread: ") == std::string::npos, filter != "reads")
        << ran.output;
  }
}

struct FilterCase {
  std::string program;
  std::string why_stepped;  ///< Reason printed for stepping; empty if the program is not stepped.
};

std::ostream& operator<<(std::ostream& out, const FilterCase& test) {
  return out << test.program;
}

class RecordBehindFilters : public testing::TestWithParam<FilterCase> {};

TEST_P(RecordBehindFilters, RunsAsItDoesAlone) {
  const Ran ran = record({"--stats", "--", BT_INFERIOR_DIR "/filters", GetParam().program});
  EXPECT_EQ(ran.status, 0) << ran.output;
  const std::string& why = GetParam().why_stepped;
  EXPECT_THAT(ran.output, HasSubstr(why));
  EXPECT_EQ(ran.output.find("a seccomp filter") == std::string::npos, why.empty()) << ran.output;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, RecordBehindFilters,
    testing::Values(FilterCase{"alone", ""}, FilterCase{"family", ""}, FilterCase{"fails", ""},
                    FilterCase{"everybody", ""}, FilterCase{"masked", ""},
                    FilterCase{"place", "a seccomp filter looks at where system calls are made"}),
    [](const auto& test) { return test.param.program; });

TEST(Record, ThreadsThatAnExecEndsDieOfNoSignal) {
  const TemporaryFolder folder;
  const Ran ran =
      record({"--on", "always", "-o", folder / "core", "--", BT_INFERIOR_DIR "/exec_among", "20"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, testing::Not(HasSubstr("does not stop")));
  EXPECT_THAT(ran.output, testing::Not(HasSubstr("SIGSEGV")));
}

/// The new program has the thread's id: signals meant for the thread must not reach it.
TEST(Record, SendsNothingToTheProgramThatReplacesAThreadAtAMiss) {
  const Ran ran = run({"env", "BACKTRAIL_KEEP=0", BT_BACKTRAIL, "record", "--",
                       BT_INFERIOR_DIR "/exec_amid_misses", kSanitized ? "20" : "120"});
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST(Record, SourceNoneAndStepRunTheSame) {
  for (const char* source : {"none", "step", "cache", "auto"}) {
    const Ran ran = record({"--source", source, "--", BT_INFERIOR_DIR "/three_steps"});
    EXPECT_EQ(ran.status, run({BT_INFERIOR_DIR "/three_steps"}).status) << source;
  }
  EXPECT_EQ(record({"--source", "magic", "--", "true"}).status, 1);
  EXPECT_EQ(record({"--ring", "much", "--", "true"}).status, 1);
}

}  // namespace
}  // namespace backtrail::test
