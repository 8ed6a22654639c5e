// SPDX-License-Identifier: Apache-2.0
// lldb as the client. It finds libraries through qShlibInfoAddr, which gdb does not need.

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kLimit{120};

/// Sets the path of lldb's Python modules, which Debian's lldb does not find.
std::vector<std::string> lldb_environment(const std::string& version) {
  std::vector<std::string> out = test_environment();
  out.push_back("PYTHONPATH=/usr/lib/llvm-" + version + "/lib/python3.11/dist-packages");
  out.emplace_back("HOME=/");
  return out;
}

/// Returns lldb's output for these commands, connected to a server that has launched `program`.
std::string lldb_on(const std::string& version, const std::string& program,
                    const std::vector<std::string>& commands) {
  std::vector<std::string> words = server_command(Peer::kUnderTest);
  words.insert(words.end(), {"--once", "127.0.0.1:0", inferior(program)});
  Subprocess server{
      {.arguments = words, .environment = test_environment(), .working_directory = "/"}};
  constexpr std::string_view kPort = "Listening on port ";
  const auto at = server.output().find(kPort, 0, deadline_in(kLimit));
  if (!at || !server.output().find("\n", *at, deadline_in(kLimit))) return server.output().text();
  const std::string& said = server.output().text();
  const std::size_t begin = *at + kPort.size();
  const std::string port = said.substr(begin, said.find_first_not_of("0123456789", begin) - begin);
  words = {"lldb-" + version,
           "--no-lldbinit",
           "--no-use-colors",
           "-b",
           "-o",
           "file " + inferior(program),
           "-o",
           "gdb-remote 127.0.0.1:" + port};
  for (const std::string& command : commands) words.insert(words.end(), {"-o", command});
  Subprocess lldb{
      {.arguments = words, .environment = lldb_environment(version), .working_directory = "/"}};
  EXPECT_TRUE(lldb.wait(deadline_in(kLimit)));
  return lldb.output().text();
}

class Lldb : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    Subprocess lldb{{.arguments = {"lldb-" + version(), "--version"},
                     .environment = lldb_environment(version()),
                     .working_directory = "/"}};
    const auto status = lldb.wait(deadline_in(kLimit));
    if (!status || *status != 0) GTEST_SKIP() << "no lldb-" << version();
  }
  static std::string version() { return GetParam(); }
};

TEST_P(Lldb, SeesLibrariesAndCallsFunctions) {
  const std::string said = lldb_on(version(), "calls",
                                   {"breakpoint set -n main", "continue", "image list",
                                    "expression (int)abs(-42)", "breakpoint set -n puts"});
  EXPECT_THAT(said, AllOf(HasSubstr("libc.so.6"), HasSubstr("ld-linux-x86-64.so.2"),
                          ContainsRegex("\\(int\\) \\$[0-9]* = 42"),
                          ContainsRegex("Breakpoint 2: where = libc.so.6`")));
}

TEST_P(Lldb, NamesFramesOfLibraries) {
  const std::string said =
      lldb_on(version(), "signals", {"breakpoint set -n raise", "continue", "bt"});
  EXPECT_THAT(said, AllOf(ContainsRegex("frame #0: .* libc.so.6`"), HasSubstr("`main")));
}

INSTANTIATE_TEST_SUITE_P(Versions, Lldb, ::testing::Values("14", "19"),
                         [](const auto& tested) { return std::string{tested.param}; });

}  // namespace
}  // namespace backtrail::test
