// SPDX-License-Identifier: Apache-2.0
// `backtrail record` together with other tracers: debuggers inside and outside, code written by
// another route than its mapping, programs that inspect themselves.

#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "record_fixture.hpp"
#include "test/support/effort.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Words inferior(const std::string& name, const Words& arguments = {}) {
  return with({BT_INFERIOR_DIR "/" + name}, arguments);
}

class CodeWrittenByASideDoor : public testing::TestWithParam<const char*> {};

TEST_P(CodeWrittenByASideDoor, IsRunAsItIs) {
  const Words program = inferior("code_doors", {GetParam()});
  const Ran native = run(program);
  EXPECT_EQ(native.status, 0) << native.output;
  const Ran recorded = record(with({"--"}, program));
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(recorded.output, native.output);
}

// Run once, often, and so often that pages with writable code are write-protected.
INSTANTIATE_TEST_SUITE_P(Runs, CodeWrittenByASideDoor, testing::Values("1", "1000", "1000000"));

class CodeThatChangesInFrontOf : public testing::TestWithParam<Words> {};

TEST_P(CodeThatChangesInFrontOf, AThreadIsRunAsItIs) {
  const Ran recorded = record(with({"--"}, inferior("code_awaited", with({"300"}, GetParam()))));
  EXPECT_EQ(recorded.status, 0) << recorded.output;
}

INSTANTIATE_TEST_SUITE_P(Ways, CodeThatChangesInFrontOf,
                         testing::Values(Words{"wait", "file"}, Words{"wait", "store"},
                                         Words{"spin", "file"}, Words{"spin", "store"}));

class CodeOfProcessesThatShareMemory : public testing::TestWithParam<const char*> {};

TEST_P(CodeOfProcessesThatShareMemory, IsRunAsItIs) {
  for (const char* program : {"code_sharers", "code_sharers_no_pie"}) {
    const Words words = inferior(program, {GetParam(), "1"});
    const Ran native = run(words);
    EXPECT_EQ(native.status, 0) << native.output;
    const Ran recorded = record(with({"--stats", "--"}, words));
    EXPECT_EQ(recorded.status, 0) << recorded.output;
    EXPECT_THAT(recorded.output, Not(HasSubstr("all of a thread")))
        << "every process is translated";
  }
}

INSTANTIATE_TEST_SUITE_P(Relations, CodeOfProcessesThatShareMemory,
                         testing::ValuesIn(every<const char*>(
                             4, {"child", "parent", "files", "signals", "silent", "first", "second",
                                 "third", "orphan", "orphaned", "exec", "vfork"})),
                         [](const auto& test) { return std::string{test.param}; });

// So often that the pages would be write-protected, if the process had its memory for itself.
TEST(CodeOfSharers, MayBeWrittenByEachOfThem) {
  for (const char* program : {"code_sharers", "code_sharers_no_pie"}) {
    for (const char* relation : {"child", "parent"}) {
      for (const char* way : {"store", "read"}) {
        const Ran recorded = record(with({"--"}, inferior(program, {relation, "2000000", way})));
        EXPECT_EQ(recorded.status, 0) << relation << ", " << way << ": " << recorded.output;
      }
    }
  }
}

TEST(MemoryOfSharers, IsNotUnmappedByOneOfThem) {
  const TemporaryFolder folder;
  const Ran recorded =
      record(with({"--stats", "-o", folder / "core", "--"}, inferior("unmaps_another")));
  EXPECT_EQ(recorded.status, 0) << recorded.output;
  EXPECT_THAT(recorded.output, HasSubstr("processes, threads     2, 2")) << "not threads of one";
}

TEST(ForkedChildren, LackWhatIsNotForked) {
  // At first nothing is kept of the program.
  for (int i = 0; i < 3; ++i) {
    const Ran recorded = record(with({"--"}, inferior("not_forked")));
    EXPECT_EQ(recorded.status, 0);
    EXPECT_EQ(recorded.output, "child 11\nchild 11\nchild 11\n");
  }
}

TEST(VforksChild, OutlivesItsParent) {
  const Ran native = run(inferior("vfork_outlives"));
  EXPECT_THAT(native.output, StartsWith("parent 9 child "));
  const Ran recorded = record(with({"--"}, inferior("vfork_outlives")));
  EXPECT_EQ(recorded.status, 0);
  EXPECT_EQ(recorded.output, native.output);
}

TEST(RecordAmongOthers, LeavesToDebuggersWhatTheyTrace) {
  const Ran native = run(inferior("traces_others"));
  ASSERT_EQ(native.status, 5) << native.output;
  const Ran recorded = record(with({"--stats", "--"}, inferior("traces_others")));
  EXPECT_EQ(recorded.status, 5);
  EXPECT_THAT(recorded.output, StartsWith(native.output));
  EXPECT_THAT(recorded.output, HasSubstr("(traces_others) began to trace it; 2 more are not"));
  EXPECT_THAT(recorded.output, HasSubstr("left unrecorded        3 processes\n"));
}

TEST(RecordAmongOthers, RecordsInsideARecorder) {
  const TemporaryFolder folder;
  const Ran ran = record(
      with({"-o", folder / "outer", "--", BT_BACKTRAIL, "record", "-o", folder / "inner", "--"},
           inferior("crashes", {"null"})));
  EXPECT_EQ(ran.status, 1000 + SIGSEGV) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("SIGSEGV in crashes"));
  EXPECT_THAT(ran.output, Not(HasSubstr("container")));
  EXPECT_TRUE(std::filesystem::exists(folder / "inner"));
}

TEST(RecordAmongOthers, RunsUnrecordedWhereNothingMayBeTraced) {
  const Ran ran = run(
      with(inferior("no_ptrace"), with({BT_BACKTRAIL, "record", "--"}, shell("echo ran; exit 4"))));
  EXPECT_EQ(ran.status, 4);
  EXPECT_THAT(ran.output, HasSubstr("runs unrecorded: tracing is not permitted here"));
  EXPECT_THAT(ran.output, HasSubstr("ran\n"));
}

TEST(RecordAmongOthers, EndsInTimeWhereNothingMayBeTraced) {
  // A sanitized recorder's leak check needs ptrace, which is forbidden here.
  const Ran ran = run(with(inferior("no_ptrace"),
                           {"/usr/bin/env", "ASAN_OPTIONS=detect_leaks=0", BT_BACKTRAIL, "record",
                            "--on", "timeout=0.1", "--", BT_INFERIOR_DIR "/spin"}));
  EXPECT_EQ(ran.status, 124) << ran.output;
}

class Names : public testing::Test {
 protected:
  void SetUp() override {
    const std::string script = folder_ / "who.sh";
    std::ofstream{script} << "#!/bin/sh\necho $0 $1\n";
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  }
  [[nodiscard]] std::string said(const Words& words) const {
    return finish(*start(words, folder_.path())).output;
  }
  TemporaryFolder folder_;
};

TEST_F(Names, AreThoseThatProgramsFindWithoutTheRecorder) {
  const std::string below = "../" + std::filesystem::path{folder_.path()}.filename().string();
  for (const std::string& name : {std::string{"./who.sh"}, below + "/who.sh", folder_ / "who.sh"}) {
    EXPECT_EQ(said({BT_BACKTRAIL, "record", "--", name, "x"}), name + " x\n");
  }
  EXPECT_EQ(said({"/usr/bin/env", "PATH=/nowhere:.", BT_BACKTRAIL, "record", "--", "who.sh", "x"}),
            "./who.sh x\n");
}

TEST_F(Names, OfTheCommandIsNotTheRecorders) {
  const std::string command =
      std::string{"_="} + BT_BACKTRAIL + " " + BT_BACKTRAIL + " record -- /usr/bin/env";
  EXPECT_THAT(said(shell(command)), HasSubstr("_=/usr/bin/env\n"));
}

TEST(RecordAmongOthers, KeepsNoFileOfWhatIsNotToBeDumped) {
  const TemporaryFolder folder;
  const Ran ran = record(with({"-o", folder / "core", "--"}, inferior("undumpable")));
  EXPECT_EQ(ran.status, 1000 + SIGSEGV);
  EXPECT_THAT(ran.output, HasSubstr("it has asked that no core be kept of it"));
  EXPECT_FALSE(std::filesystem::exists(folder / "core"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root may read its memory";
  const Ran wanted =
      record(with({"--dump-undumpable", "-o", folder / "core", "--"}, inferior("undumpable")));
  EXPECT_EQ(wanted.status, 1000 + SIGSEGV);
  EXPECT_TRUE(std::filesystem::exists(folder / "core"));
}

}  // namespace
}  // namespace backtrail::test
