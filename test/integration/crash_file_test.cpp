// SPDX-License-Identifier: Apache-2.0
// `backtrail record -o` and `backtrail replay`: crashing programs, and a real gdb on their files.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>

#include <gmock/gmock.h>

#include "arch/base/page.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "test/support/subprocess.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Ended {
  int status = -1;
  std::string output;
};

Ended run(const std::vector<std::string>& words, const std::string& folder) {
  test::SpawnOptions options;
  options.arguments = words;
  options.environment = test::test_environment();
  options.working_directory = folder;
  test::Subprocess program{options};
  const auto status = program.wait(test::deadline_in(std::chrono::seconds{240}));
  EXPECT_TRUE(status) << words.front() << " does not end";
  return {status.value_or(-1), program.output().text()};
}

std::string program_path(const std::string& name) {
  return std::string{BT_INFERIOR_DIR} + "/" + name;
}

/// Records an inferior with a crash file in a temporary folder.
class CrashFile : public ::testing::Test {
 protected:
  Ended record(const std::string& name, const std::vector<std::string>& arguments,
               const std::string& pattern = "crash.core") {
    std::vector<std::string> words{BT_SERVER, "record", "--source", "cache",
                                   "-o",      pattern,  "--",       program_path(name)};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return run(words, folder.path());
  }
  [[nodiscard]] bool kept(const std::string& name = "crash.core") const {
    return std::filesystem::exists(folder / name);
  }
  [[nodiscard]] bool nothing_left() const { return std::filesystem::is_empty(folder.path()); }
  std::string gdb(const std::string& name, const std::vector<std::string>& commands) {
    std::vector<std::string> words{"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"};
    words.insert(words.end(), {"-ex", "set pagination off", "-ex", "set sysroot"});
    for (const std::string& command : commands) words.insert(words.end(), {"-ex", command});
    words.push_back(program_path(name));
    return run(words, folder.path()).output;
  }
  std::string replay(const std::string& name, std::vector<std::string> commands) {
    commands.insert(commands.begin(),
                    std::string{"target remote | "} + BT_SERVER + " replay - crash.core");
    return gdb(name, commands);
  }

  test::TemporaryFolder folder;
};

TEST_F(CrashFile, IsKeptWhenASignalEndsTheProgram) {
  const Ended ended = record("crashes", {"null"});
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGSEGV);
  EXPECT_THAT(ended.output, AllOf(StartsWith("null\n"), HasSubstr("crash.core")));
  EXPECT_TRUE(kept());
}

TEST_F(CrashFile, NothingIsLeftWhenNothingWentWrong) {
  for (const char* how : {"fine", "caught"}) {
    const Ended ended = record("crashes", {how});
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0);
    EXPECT_EQ(ended.output, std::string{how} + "\n");
    EXPECT_TRUE(nothing_left());
  }
}

TEST_F(CrashFile, TheExitStatusIsTheProgramsOwn) {
  const Ended ended = record("crashes", {"exit", "3"});
  EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 3);
  EXPECT_TRUE(nothing_left());
}

TEST_F(CrashFile, AFaultThatIsIgnoredStillKills) {
  EXPECT_TRUE(WIFSIGNALED(record("crashes", {"ignored"}).status));
  EXPECT_TRUE(kept());
}

TEST_F(CrashFile, AHandlerThatRaisesAgainIsOneFile) {
  EXPECT_TRUE(WIFSIGNALED(record("crashes", {"reraise"}, "%e.%p.core").status));
  const std::filesystem::directory_iterator names{folder.path()};
  EXPECT_EQ(std::distance(begin(names), end(names)), 1);
}

TEST_F(CrashFile, OfHundredsOfThreadsHasThemAll) {
  const Ended ended = record("crashes", {"waiting", "300"});
  ASSERT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_EQ(WTERMSIG(ended.status), SIGSEGV);
  const auto file = MappedFile::open(folder / "crash.core");
  ASSERT_TRUE(file);
  const auto core = decoder::CoreFile::parse(file->bytes());
  ASSERT_TRUE(core);
  EXPECT_EQ(core->threads().size(), 302U);
  const decoder::TraceArchive archive{*core};
  EXPECT_EQ(archive.threads().size(), 302U);
  for (const auto& [tid, thread] : archive.threads()) EXPECT_FALSE(archive.load(tid).empty());
}

TEST_F(CrashFile, ASignalThatEndsNobodyLetsAllThreadsGoOn) {
  const Ended ended = record("namespace_init", {});
  ASSERT_TRUE(WIFEXITED(ended.status));
  if (WEXITSTATUS(ended.status) == 77) GTEST_SKIP() << "no namespaces may be made here";
  EXPECT_EQ(WEXITSTATUS(ended.status), 5);
}

TEST_F(CrashFile, AnOverflownStackCanBeWritten) {
  for (const char* how : {"overflow", "overflow-alt"}) {
    EXPECT_TRUE(WIFSIGNALED(record("crashes", {how}, std::string{how}).status));
    EXPECT_TRUE(kept(how));
  }
}

TEST_F(CrashFile, AChildsDeathCountsWhenTheProgramFails) {
  EXPECT_TRUE(WIFEXITED(record("crashes", {"child", "1"}).status));
  EXPECT_TRUE(kept());
}

TEST_F(CrashFile, AChildThatWasExpectedToDieLeavesNothing) {
  EXPECT_TRUE(WIFEXITED(record("crashes", {"child", "0"}).status));
  EXPECT_TRUE(nothing_left());
}

TEST_F(CrashFile, WhatIsNoPlainFileIsNotReplaced) {
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Ended ended = record("crashes", {"null"}, pipe);
  EXPECT_TRUE(WIFSIGNALED(ended.status));
  EXPECT_THAT(ended.output, HasSubstr("it is not a plain file and is left alone"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  // A child's crash file, which has another name at first, must not replace the pipe either.
  record("crashes", {"child", "1"}, pipe);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(CrashFile, GdbStepsBackFromTheCrashToWhatCausedIt) {
  record("smash", {});
  const std::string dead = gdb("smash", {"core-file crash.core", "bt 3"});
  const std::string text =
      replay("smash", {"bt 3", "record btrace pt", "info record", "reverse-stepi", "bt 1",
                       "reverse-step", "reverse-step", "reverse-step", "reverse-step"});
  for (const std::string& shown : {dead, text}) {
    EXPECT_THAT(shown, AllOf(ContainsRegex("#1 .* in run_order"), ContainsRegex("#2 .* in work")));
  }
  EXPECT_THAT(text, AllOf(HasSubstr("Intel Processor Trace"), HasSubstr("(0 gaps)"),
                          ContainsRegex("set_customer .*\n.*}"), Not(HasSubstr("decode error"))));
}

TEST_F(CrashFile, BothFormatsShowTheSameCalls) {
  record("smash", {});
  const std::vector<std::string> history{"record function-call-history"};
  for (const char* format : {"bts", "pt"}) {
    EXPECT_THAT(replay("smash", {std::string{"record btrace "} + format, history.front()}),
                ContainsRegex("set_customer.*\n[0-9]+\twork\\(char const\\*\\)\n"
                              "[0-9]+\trun_order\\(Order&\\)\n"))
        << format;
  }
}

TEST_F(CrashFile, GoingOnSaysThatTheProgramIsDead) {
  record("crashes", {"null"});
  const std::string text =
      replay("crashes", {"record btrace", "break main", "reverse-continue", "continue", "continue",
                         "p sink = 3", "bt", "p $_siginfo.si_signo", "info sharedlibrary",
                         "info proc mappings"});
  EXPECT_THAT(text, Not(HasSubstr("unable to open /proc")));
  EXPECT_THAT(text, ContainsRegex("0x[0-9a-f]+ .*r-xp .*crashes"));
  EXPECT_THAT(text,
              AllOf(ContainsRegex("Breakpoint 1, .*main"),
                    HasSubstr("The program died here: SIGSEGV"), HasSubstr("Cannot access memory"),
                    ContainsRegex("#0 .*fault \\(\\)"), HasSubstr("= 11"), HasSubstr("libc.so.6")));
}

TEST_F(CrashFile, HoldsAMappingThatIsNamedLikeTheRecordersOwn) {
  record("own_memfd", {});
  const auto file = MappedFile::open(folder / "crash.core");
  ASSERT_TRUE(file);
  const auto core = decoder::CoreFile::parse(file->bytes());
  ASSERT_TRUE(core) << core.error().message();
  std::vector<decoder::CoreMapping> named;
  std::ranges::copy_if(core->mappings(), std::back_inserter(named), [](const auto& mapping) {
    return mapping.path.starts_with("/memfd:backtrail");
  });
  ASSERT_THAT(named, ::testing::SizeIs(1)) << "none of the recorder's";
  const std::string_view text{"the program's own"};
  std::array<std::uint8_t, 64> found{};
  ASSERT_EQ(core->read(named.front().start, found), found.size());
  EXPECT_TRUE(std::ranges::equal(text, std::span{found}.first(text.size())));
}

/// The first argument of left_memory, and its second one.
class MemoryLeftByOthers : public CrashFile,
                           public ::testing::WithParamInterface<std::array<const char*, 2>> {
 protected:
  /// Records left_memory; returns where the recorder had mapped memory for the other process.
  std::vector<TraceeAddr> places_of_other(std::vector<std::string> more) {
    more.insert(more.begin(), GetParam().begin(), GetParam().end());
    output_ = record("left_memory", more).output;
    std::vector<TraceeAddr> places;
    std::istringstream words{output_};
    for (std::string word; words >> word;) {
      if (word == "at" && words >> word) places.emplace_back(std::stoull(word, nullptr, 16));
    }
    return places;
  }
  void expect_none_in_file(const std::vector<TraceeAddr>& places) {
    ASSERT_THAT(places, Not(::testing::IsEmpty())) << output_;
    const auto file = MappedFile::open(folder / "crash.core");
    ASSERT_TRUE(file);
    const auto core = decoder::CoreFile::parse(file->bytes());
    ASSERT_TRUE(core) << core.error().message();
    for (const TraceeAddr place : places) {
      EXPECT_EQ(core->segment_at(place), nullptr) << place.value();
      EXPECT_EQ(core->mapping_at(place), nullptr) << place.value();
    }
  }

  std::string output_;
};

TEST_P(MemoryLeftByOthers, IsUnmappedAndNotInTheFile) {
  expect_none_in_file(places_of_other({}));
  // Without a signal the first process may not have stopped since.
  const bool told = GetParam()[1] == std::string_view{"told"};
  EXPECT_TRUE(!told || output_.find("left 0\n") != std::string::npos) << output_;
}

TEST_P(MemoryLeftByOthers, IsNotInTheFileIfItMayNotBeUnmapped) {
  expect_none_in_file(places_of_other({"forbids"}));
  EXPECT_THAT(output_, Not(HasSubstr("left 0\n")));
}

TEST_P(MemoryLeftByOthers, GivesWayToTheProgramsOwn) {
  const auto places = places_of_other({"maps"});
  ASSERT_THAT(places, Not(::testing::IsEmpty())) << output_;
  const auto file = MappedFile::open(folder / "crash.core");
  ASSERT_TRUE(file);
  const auto core = decoder::CoreFile::parse(file->bytes());
  ASSERT_TRUE(core) << core.error().message();
  const std::string_view text{"the program's own"};
  for (const TraceeAddr place : places) {
    std::array<std::uint8_t, 17> found{};
    EXPECT_EQ(core->read(place, found), found.size()) << place.value();
    EXPECT_TRUE(std::ranges::equal(text, found)) << place.value();
    const TraceeAddr next = place + kPageBytes;
    if (std::ranges::find(places, next) != places.end()) continue;
    EXPECT_EQ(core->segment_at(next), nullptr) << next.value();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MemoryLeftByOthers,
                         ::testing::Values(std::array{"ends", "told"}, std::array{"ends", "blocks"},
                                           std::array{"executes", "told"},
                                           std::array{"executes", "blocks"}),
                         [](const auto& test) {
                           return std::string{test.param[0]} + "_" + test.param[1];
                         });

}  // namespace
}  // namespace backtrail::tracee
