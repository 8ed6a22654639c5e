// SPDX-License-Identifier: Apache-2.0
// lldb as the client. It finds libraries through qShlibInfoAddr, which gdb does not need.

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/lldb.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{120};

/// Returns lldb's output for these commands, connected to a server that has launched `program`.
std::string lldb_on(const InstalledLldb& lldb, const std::vector<std::string>& program,
                    const std::vector<std::string>& commands) {
  std::vector<std::string> words = server_command(Peer::kUnderTest);
  words.insert(words.end(), {"--once", "127.0.0.1:0"});
  words.insert(words.end(), program.begin(), program.end());
  Subprocess server{
      {.arguments = words, .environment = test_environment(), .working_directory = "/"}};
  constexpr std::string_view kPort = "Listening on port ";
  const auto at = server.output().find(kPort, 0, deadline_in(kLimit));
  if (!at || !server.output().find("\n", *at, deadline_in(kLimit))) return server.output().text();
  const std::string& said = server.output().text();
  const std::size_t begin = *at + kPort.size();
  const std::string port = said.substr(begin, said.find_first_not_of("0123456789", begin) - begin);
  words = {lldb.command,
           "--no-lldbinit",
           "--no-use-colors",
           "-b",
           "-o",
           "file " + program.front(),
           "-o",
           "gdb-remote 127.0.0.1:" + port};
  // After a crash lldb reads its input unless it has commands for that.
  words.insert(words.end(), {"-k", "bt", "-k", "quit"});
  for (const std::string& command : commands) words.insert(words.end(), {"-o", command});
  std::vector<std::string> environment = test_environment();
  environment.push_back("PYTHONPATH=" + lldb.python_path);
  environment.emplace_back("HOME=/");
  Subprocess client{{.arguments = words, .environment = environment, .working_directory = "/"}};
  EXPECT_TRUE(client.wait(deadline_in(kLimit)));
  return client.output().text();
}

class Lldb : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    lldb_ = find_lldb(GetParam());
    if (!lldb_) GTEST_SKIP() << "no lldb-" << GetParam();
  }
  std::string on(const std::vector<std::string>& program,
                 const std::vector<std::string>& commands) {
    return lldb_on(*lldb_, program, commands);
  }

 private:
  std::optional<InstalledLldb> lldb_;
};

TEST_P(Lldb, SeesLibrariesAndCallsFunctions) {
  const std::string said =
      on({inferior("calls")}, {"breakpoint set -n main", "continue", "image list",
                               "expression (int)abs(-42)", "breakpoint set -n puts"});
  EXPECT_THAT(said, AllOf(HasSubstr("libc.so.6"), HasSubstr("ld-linux-x86-64.so.2"),
                          ContainsRegex("\\(int\\) \\$[0-9]* = 42"),
                          ContainsRegex("Breakpoint 2: where = libc.so.6`")));
}

TEST_P(Lldb, NamesFramesOfLibraries) {
  const std::string said = on({inferior("signals")}, {"breakpoint set -n raise", "continue", "bt"});
  EXPECT_THAT(said, AllOf(ContainsRegex("frame #0: .* libc.so.6`"), HasSubstr("`main")));
}

TEST_P(Lldb, StepsAndReadsRegistersAndMemory) {
  const std::string said =
      on({inferior("calls")},
         {"breakpoint set -n touch_global", "continue", "thread step-over", "expression global",
          "memory read --format d --size 4 --count 1 &global", "finish", "register read rip"});
  EXPECT_THAT(said,
              AllOf(ContainsRegex("stop reason = step over"), ContainsRegex("\\(int\\) \\$0 = 8"),
                    ContainsRegex("0x[0-9a-f]+: 8\n"), ContainsRegex("stop reason = step out"),
                    ContainsRegex("rip = 0x[0-9a-f]+ +calls`main")));
}

TEST_P(Lldb, ListsThreads) {
  const std::string said =
      on({inferior("threads")},
         {"breakpoint set -n everyone_worked", "continue", "thread list", "thread backtrace all"});
  EXPECT_THAT(said, AllOf(ContainsRegex("thread #5: tid = "), ContainsRegex("`everyone_worked"),
                          ContainsRegex("`run\\(argument=")));
}

TEST_P(Lldb, SeesHowTheProgramEnds) {
  EXPECT_THAT(on({inferior("exits"), "7"}, {"continue"}),
              ContainsRegex("Process [0-9]+ exited with status = 7 "));
  EXPECT_THAT(on({inferior("exits"), "segv"}, {"continue"}),
              AllOf(HasSubstr("signal SIGSEGV"), HasSubstr("`crash")));
}

INSTANTIATE_TEST_SUITE_P(Versions, Lldb, ::testing::ValuesIn(kLldbVersions),
                         [](const auto& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace backtrail::test
