// SPDX-License-Identifier: Apache-2.0
// `backtrail record -o FILE --on LIST`: which endings keep a file; the recorder changes none.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::string inferior(const std::string& name) {
  return std::string{BT_INFERIOR_DIR} + "/" + name;
}

bool is_built(const std::string& name) {
  return std::filesystem::exists(inferior(name));
}

/// Returns the recorder's own lines.
std::string own_lines(const std::string& text) {
  std::string out;
  const std::regex line{"backtrail: [^\n]*\n"};
  for (std::sregex_iterator at{text.begin(), text.end(), line}, end; at != end; ++at) {
    out += at->str();
  }
  return out;
}

/// Removes the recorder's lines and everything that differs from run to run: addresses, ids, times,
/// thread states.
std::string lasting(std::string text) {
  text = std::regex_replace(text, std::regex{"backtrail: [^\n]*\n"}, "");
  text = std::regex_replace(text, std::regex{"0x[0-9a-f]+"}, "ADDRESS");
  text = std::regex_replace(text, std::regex{"==[0-9]+==|pid[ =:][0-9]+|tid=[0-9]+"}, "ID");
  text = std::regex_replace(text, std::regex{"(running|finished)\\)"}, "STATE)");
  return std::regex_replace(text, std::regex{"[0-9]+ ms"}, "TIME");
}

struct Case {
  std::string program;
  Words arguments;
  bool kept = false;  ///< A file is kept by default.
};

std::ostream& operator<<(std::ostream& out, const Case& shown) {
  return out << shown.program << " " << testing::PrintToString(shown.arguments);
}

class Ending : public testing::TestWithParam<Case> {};

TEST_P(Ending, StatusAndOutputAreTheProgramsOwn) {
  const Case& shown = GetParam();
  if (!is_built(shown.program)) GTEST_SKIP() << "the compiler has no such sanitizer";
  const Words words = with({inferior(shown.program)}, shown.arguments);
  const Ran native = run(words);
  const TemporaryFolder folder;
  const Ran recorded = record(with({"-o", folder / "crash.core", "--"}, words));
  EXPECT_EQ(recorded.status, native.status);
  EXPECT_EQ(lasting(recorded.output), lasting(native.output));
  if (shown.kept) {
    // Failing children may have files beside it.
    EXPECT_THAT(folder.names(), Contains("crash.core"));
    EXPECT_THAT(own_lines(recorded.output), HasSubstr("crash.core"));
  } else {
    EXPECT_THAT(folder.names(), IsEmpty());
    EXPECT_EQ(own_lines(recorded.output), "");
  }
}

Case crash(const std::string& how, const std::string& number = "0") {
  return {"crashes", {how, number}, true};
}

Case sanitized(const std::string& by, const std::string& how, bool kept,
               const std::string& number = "0") {
  return {"sanitized_" + by, {how, number}, kept};
}

Case death_tests(const std::string& style, const std::string& filter, bool kept) {
  return {"death_tests",
          {"--gtest_death_test_style=" + style, "--gtest_filter=" + filter, "--gtest_print_time=0"},
          kept};
}

INSTANTIATE_TEST_SUITE_P(Plain, Ending,
                         testing::Values(Case{"crashes", {"fine"}, false},
                                         Case{"crashes", {"exit", "1"}, false},
                                         Case{"crashes", {"caught"}, false}, crash("null"),
                                         crash("abort"), crash("ud2"), crash("wild"),
                                         crash("jump0"), crash("divide"), crash("overflow"),
                                         crash("overflow-alt"), crash("reraise"), crash("ignored"),
                                         crash("threads", "16")));

/// Returns every signal that ends a program by default.
std::vector<Case> fatal_signals() {
  std::vector<Case> out;
  for (const int number :
       {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,  SIGBUS,    SIGFPE,  SIGKILL,
        SIGUSR1, SIGSEGV,   SIGUSR2, SIGPIPE, SIGALRM, SIGTERM,  SIGSTKFLT, SIGXCPU, SIGXFSZ,
        SIGPROF, SIGVTALRM, SIGIO,   SIGPWR,  SIGSYS,  SIGRTMIN, SIGRTMAX}) {
    out.push_back(crash("kill", std::to_string(number)));
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Signals, Ending, testing::ValuesIn(fatal_signals()));

INSTANTIATE_TEST_SUITE_P(Children, Ending,
                         testing::Values(Case{"crashes", {"child", "0"}, false},
                                         crash("child", "1"),
                                         Case{"crashes", {"children", "10"}, false}));

INSTANTIATE_TEST_SUITE_P(
    Address, Ending,
    testing::Values(
        sanitized("address", "fine", false), sanitized("address", "exit", false, "0"),
        sanitized("address", "exit", false, "1"), sanitized("address", "exit", false, "3"),
        sanitized("address", "child", false, "3"), sanitized("address", "use-after-free", true),
        sanitized("address", "null", true), sanitized("address", "leak", true),
        sanitized("address", "leak", true, "1"), sanitized("address", "leak", true, "3"),
        sanitized("address", "thread", false), sanitized("address", "hold", false, "200")));

INSTANTIATE_TEST_SUITE_P(
    OtherSanitizers, Ending,
    testing::Values(sanitized("undefined", "fine", false), sanitized("undefined", "overflow", true),
                    sanitized("undefined", "exit", false, "3"), sanitized("leak", "fine", false),
                    sanitized("leak", "exit", false, "1"), sanitized("leak", "exit", false, "23"),
                    sanitized("leak", "leak", true), sanitized("leak", "leak", true, "23"),
                    sanitized("leak", "thread", false), sanitized("leak", "hold", false, "200"),
                    sanitized("thread", "thread", false), sanitized("thread", "race", true)));

INSTANTIATE_TEST_SUITE_P(DeathTests, Ending,
                         testing::Values(death_tests("fast", "Expected.*", false),
                                         death_tests("threadsafe", "Expected.*", false),
                                         death_tests("fast", "Wrong.Reason", true),
                                         death_tests("threadsafe", "Wrong.Reason", true),
                                         death_tests("fast", "Wrong.NoDeath", false),
                                         death_tests("fast", "*", true)));

TEST(EndingsKept, AreThoseThatWereAskedFor) {
  struct {
    const char* on;
    Words words;
    bool kept;
  } const cases[] = {
      {"signal", {"null"}, true},       {"abort", {"null"}, false},
      {"abort", {"abort"}, true},       {"exit", {"exit", "3"}, true},
      {"exit", {"exit", "0"}, false},   {"exit", {"null"}, false},
      {"always", {"exit", "0"}, true},  {"always", {"null"}, true},
      {"always", {"child", "0"}, true}, {"exit,abort", {"abort"}, true},
  };
  for (const auto& each : cases) {
    const TemporaryFolder folder;
    (void)record(
        with({"-o", folder / "core", "--on", each.on, "--", inferior("crashes")}, each.words));
    EXPECT_THAT(folder.names(), SizeIs(each.kept ? 1 : 0)) << each.on << " " << each.words.front();
  }
  EXPECT_EQ(record({"--on", "fire", "true"}).status, 1);
  EXPECT_EQ(record({"--on", "timeout=never", "true"}).status, 1);
}

TEST(EndingsKept, WhatIsSaidOfAFileNeedsAFile) {
  const std::vector<std::vector<std::string>> cases{
      {"--on", "always"}, {"--full"}, {"--all"}, {"--max-disk", "1M"}};
  for (const std::vector<std::string>& options : cases) {
    const Ran ran = record(with(options, {"true"}));
    EXPECT_EQ(ran.status, 1) << options.front();
    EXPECT_THAT(ran.output, HasSubstr(options.front() + " needs -o"));
  }
}

TEST(EndingsKept, NothingIsWrittenIntoTooLittleSpaceAndThatIsSaid) {
  const TemporaryFolder folder;
  const Ran ran =
      record({"-o", folder / "core", "--max-disk", "1k", "--", inferior("crashes"), "null"});
  EXPECT_EQ(ran.status, 1000 + SIGSEGV);
  EXPECT_THAT(ran.output, HasSubstr("or --max-disk is too small for registers and traces\n"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(EndingsKept, NamesOfProgramsDoNothingToTerminals) {
  const TemporaryFolder folder;
  const std::string program = folder / "a\x1b[31m\n:b";
  std::filesystem::copy_file(inferior("crashes"), program);
  const Ran ran = record({"-o", folder / "%e.core", "--", program, "null"});
  const std::string core = folder / "a![31m!!b.core";
  EXPECT_TRUE(std::filesystem::exists(core));
  EXPECT_THAT(own_lines(ran.output), AllOf(HasSubstr("SIGSEGV in a\\x1b[31m\\x0a:b (process"),
                                           HasSubstr("a![31m!!b.core (")));
  // The kernel escapes the newline in the program's maps.
  EXPECT_THAT(run({BT_BACKTRAIL, "info", core}).output,
              HasSubstr("here    " + folder / "a\\x1b[31m\\x0a:b"));
}

TEST(EndingsKept, TheProgramsOwnHasThePlainName) {
  const TemporaryFolder folder;
  const Ran ran = record(with({"-o", folder / "core", "--"},
                              shell(inferior("crashes") + " children 9; kill -ABRT $$")));
  EXPECT_EQ(ran.status, 1000 + SIGABRT);
  EXPECT_THAT(folder.names(), SizeIs(5));
  EXPECT_THAT(own_lines(ran.output),
              AllOf(StartsWith("backtrail: SIGSEGV in crashes (process "),
                    HasSubstr("\nbacktrail: 5 older children's files were not kept\n"),
                    ContainsRegex("\nbacktrail: look at this first: SIGABRT in sh [^\n]*/core \\("
                                  "[^\n]*\n$")));
}

TEST(EndingsKept, AreAttachedWhereAskedFor) {
  const TemporaryFolder folder;
  const auto words = with({"--attachment", "-o", folder / "core", "--"}, shell("kill -ABRT $$"));
  EXPECT_THAT(record(words).output, HasSubstr("[[ATTACHMENT|" + (folder / "core") +
                                              "]]\nbacktrail: SIGABRT in sh (process "));
  Subprocess in_project{{.arguments = with({BT_BACKTRAIL, "record"}, words),
                         .environment = {"CI_PROJECT_DIR=" + (folder / "")},
                         .working_directory = {}}};
  EXPECT_THAT(finish(in_project).output, HasSubstr("[[ATTACHMENT|core]]\nbacktrail: "));
}

/// Scripts that find an interpreter try this and that before they become it.
TEST(EndingsKept, AChildFromBeforeAnExecIsNotTheCause) {
  const TemporaryFolder folder;
  const Ran ran = record(with({"--on", "exit", "-o", folder / "core", "--"},
                              shell("/bin/sh -c 'exit 1'; exec false")));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(own_lines(ran.output),
              ContainsRegex("\nbacktrail: look at this first: exit status 1 in false [^\n]*/core "
                            "\\([^\n]*\n$"));
}

/// A shell exits with its child's status. Deaths before and after that one do not matter to it.
TEST(EndingsKept, TheChildWhoseEndIsHandedOnHasThePlainName) {
  const TemporaryFolder folder;
  const std::string script = inferior("crashes") + " null; " + inferior("crashes") +
                             " abort; s=$?; " + inferior("crashes") + " null; exit $s";
  const Ran ran = record(with({"-o", folder / "core", "--"}, shell(script)));
  EXPECT_EQ(ran.status, 128 + SIGABRT);
  EXPECT_THAT(folder.names(), SizeIs(3));
  EXPECT_THAT(own_lines(ran.output),
              ContainsRegex("\nbacktrail: look at this first: SIGABRT in crashes [^\n]*/core \\("
                            "[^\n]*\n$"));
  EXPECT_THAT(run({BT_BACKTRAIL, "report", folder / "core"}).output,
              AllOf(HasSubstr("died of SIGABRT"), HasSubstr("/crashes abort\n"),
                    HasSubstr("a child of: /bin/sh -c ")));
}

TEST(EndingsKept, ARunThatTakesTooLong) {
  for (const char* how : {"hang", "stubborn", "hanging-child"}) {
    const TemporaryFolder folder;
    const Ran ran =
        record({"-o", folder / "core", "--on", "timeout=3", "--", inferior("crashes"), how});
    EXPECT_EQ(ran.status, 124);
    EXPECT_THAT(ran.output, AllOf(StartsWith(how), HasSubstr("stopped after 3 s (timeout)"),
                                  HasSubstr("time is up in crashes")));
    EXPECT_THAT(folder.names(), SizeIs(how == std::string{"hanging-child"} ? 2 : 1));
  }
  EXPECT_EQ(record({"--on", "timeout=1", "--", inferior("crashes"), "hang"}).status, 124);
  EXPECT_EQ(record({"--on", "timeout=60", "--", inferior("crashes"), "exit", "2"}).status, 2);
}

TEST(EndingsKept, TerminatedByTheRunner) {
  const TemporaryFolder folder;
  const auto process =
      start({BT_BACKTRAIL, "record", "-o", folder / "core", "--", inferior("crashes"), "leaves"});
  ASSERT_TRUE(process->output().find("ready", 0, deadline_in(kRecordPatience)));
  process->signal(SIGTERM);
  const Ran ran = finish(*process);
  EXPECT_EQ(ran.status, 7);
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("leaving\n"), HasSubstr("SIGTERM to the recorder in crashes")));
  EXPECT_THAT(folder.names(), ElementsAre("core"));
}

TEST(EndingsKept, TimeoutOfCoreutils) {
  const TemporaryFolder folder;
  const Ran ran = run({"timeout", "2", BT_BACKTRAIL, "record", "-o", folder / "core", "--",
                       inferior("crashes"), "hang"});
  const Ran native = run({"timeout", "2", inferior("crashes"), "hang"});
  EXPECT_EQ(ran.status, 124);
  EXPECT_EQ(ran.status, native.status);
  EXPECT_EQ(lasting(ran.output), lasting(native.output));
  EXPECT_THAT(own_lines(ran.output), HasSubstr("SIGTERM"));
  EXPECT_THAT(folder.names(), ElementsAre("core"));
}

TEST(EndingsKept, KilledAlone) {
  const TemporaryFolder folder;
  const auto process =
      start({BT_BACKTRAIL, "record", "-o", folder / "core", "--", inferior("crashes"), "stubborn"});
  ASSERT_TRUE(process->output().find("ready", 0, deadline_in(kRecordPatience)));
  for (const pid_t pid : live_descendants()) {
    if (pid != process->pid()) ::kill(pid, SIGKILL);
  }
  const Ran ran = finish(*process);
  EXPECT_EQ(ran.status, 1000 + SIGKILL);
  EXPECT_THAT(ran.output, HasSubstr("SIGKILL in crashes"));
  EXPECT_THAT(folder.names(), ElementsAre("core"));
}

TEST(EndingsKept, KilledWhileItWaitsForTheRecorder) {
  // While the program starts, the recorder translates, and the program mostly waits for it. A
  // signal that comes just as the program is resumed (one in a thousand) cannot be seen in time.
  int lost = 0;
  for (int i = 0; i < 20; ++i) {
    const TemporaryFolder folder;
    const auto process = start(
        {BT_BACKTRAIL, "record", "-o", folder / "core", "--", inferior("crashes"), "stubborn"});
    ASSERT_TRUE(process->output().find("stubborn\n", 0, deadline_in(kRecordPatience)));
    for (const pid_t pid : live_descendants()) {
      if (pid != process->pid()) ::kill(pid, SIGKILL);
    }
    const Ran ran = finish(*process);
    EXPECT_EQ(ran.status, 1000 + SIGKILL);
    if (folder.names().empty() && ++lost <= 2) {
      EXPECT_THAT(ran.output, HasSubstr("SIGKILL came just as the program was resumed"));
    } else {
      EXPECT_THAT(folder.names(), ElementsAre("core")) << ran.output;
    }
  }
}

/// A memory control group (version 1) of this test's own.
class MemoryGroup {
 public:
  MemoryGroup() : path_{"/sys/fs/cgroup/memory/backtrail-test-" + std::to_string(::getpid())} {
    std::error_code error;
    if (!std::filesystem::create_directory(path_, error)) path_.clear();
  }
  ~MemoryGroup() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  [[nodiscard]] bool limit(std::size_t bytes) const {
    std::ofstream file{path_ + "/memory.limit_in_bytes"};
    return !path_.empty() && file << bytes << std::flush;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(EndingsKept, KilledForItsMemory) {
  const MemoryGroup group;
  if (!group.limit(128U << 20U)) GTEST_SKIP() << "no control group for memory can be made here";
  const TemporaryFolder folder;
  const Ran ran = record(with(
      {"-o", folder / "core", "--"},
      shell("echo $$ > " + group.path() + "/cgroup.procs; exec " + inferior("crashes") + " grow")));
  EXPECT_EQ(ran.status, 1000 + SIGKILL);
  EXPECT_THAT(ran.output, HasSubstr("SIGKILL in crashes"));
  EXPECT_THAT(run({BT_BACKTRAIL, "report", folder / "core"}).output,
              AllOf(HasSubstr("grow  crashes.c:"), HasSubstr("=> SIGKILL at ")));
}

TEST(EndingsKept, AtAnyMomentOfSixteenThreads) {
  const TemporaryFolder folder;
  constexpr int kRuns = 5;
  for (int i = 0; i < kRuns; ++i) {
    const std::string seed = std::to_string(i);
    const Ran ran =
        record({"-o", folder / seed, "--", inferior("random_crash"), seed, "and crash"});
    EXPECT_EQ(ran.status, 1000 + SIGSEGV) << ran.output;
    EXPECT_THAT(run({BT_BACKTRAIL, "info", folder / seed}).output,
                AllOf(HasSubstr("SIGSEGV in thread"), Not(HasSubstr("damaged")),
                      Not(HasSubstr("cut off"))));
    const Ran passed = record({"-o", folder / "none", "--", inferior("random_crash"), seed});
    EXPECT_EQ(passed.output, "all right\n");
  }
  EXPECT_THAT(folder.names(), SizeIs(kRuns));
}

/// Returns the branches of the thread that `info` lists first.
long branches_of(const std::string& file) {
  const std::string text = run({BT_BACKTRAIL, "info", file}).output;
  std::smatch found;
  return std::regex_search(text, found, std::regex{"([0-9]+) branches in"}) ? std::stol(found[1])
                                                                            : 0;
}

TEST(EndingsKept, AllOfTheTraceWhereAskedFor) {
  const TemporaryFolder folder;
  const Words words{"--", inferior("random_crash"), "5", "and crash"};
  (void)record(with({"-o", folder / "last", "--ring", "64k"}, words));
  (void)record(with({"-o", folder / "all", "--ring", "64k", "--all"}, words));
  EXPECT_GT(branches_of(folder / "all"), 2 * branches_of(folder / "last"));
  EXPECT_EQ(record({"-o", folder / "none", "--all", "--", "true"}).output, "");
  EXPECT_THAT(folder.names(), ElementsAre("all", "last"));
  EXPECT_EQ(record({"--all", "--", "true"}).status, 1);
}

}  // namespace
}  // namespace backtrail::test
