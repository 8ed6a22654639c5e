// SPDX-License-Identifier: Apache-2.0
// gdb's messages when the user tries to change something in `backtrail replay`.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "test/gdb/on_program.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::HasSubstr;

class Replay : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string backtrail = server_command(Peer::kUnderTest)[0];
    const std::string core = folder / "crash.core";
    SpawnOptions options{.arguments = {backtrail, "record", "-o", core, "--", inferior("inlined")},
                         .environment = test_environment(),
                         .working_directory = folder.path()};
    Subprocess recorded{options};
    ASSERT_TRUE(recorded.wait(deadline_in(std::chrono::seconds{60})));
    GdbOptions gdb_options;
    gdb_options.symbols = inferior("inlined");
    gdb_options.connect = false;
    gdb = std::make_unique<GdbSession>(std::move(gdb_options));
    greeting = gdb->run(fmt::format("target remote | {} replay - {}", backtrail, core));
  }

  TemporaryFolder folder;
  std::unique_ptr<GdbSession> gdb;
  std::string greeting;
};

TEST_F(Replay, SaysInPlainWordsThatNothingCanBeChanged) {
  EXPECT_THAT(greeting, HasSubstr("Memory and registers cannot be changed"));
  const std::string words = "a recorded crash cannot be changed'";
  for (const char* recording : {"record btrace", "record stop"}) {
    for (const char* command : {"set var $rax = 1", "set var $st0 = 1", "jump main", "return"}) {
      EXPECT_THAT(gdb->run(command), HasSubstr(words)) << command;
    }
    // gdb 13 gives this message for these commands whatever the server's error says.
    for (const char* command : {"set var sink = 1", "print sink = 1", "call outside(3)"}) {
      EXPECT_THAT(gdb->run(command),
                  ::testing::AnyOf(HasSubstr("Cannot access memory at address"), HasSubstr(words)))
          << command;
    }
    gdb->run(recording);
  }
  EXPECT_THAT(gdb->run("continue"), HasSubstr("The program died here"));
  // The failed commands changed nothing.
  EXPECT_EQ(gdb->value("sink != 1"), "1");
  EXPECT_THAT(gdb->run("frame"), HasSubstr("return *nowhere;"));
}

/// gdb 13 takes a thread that has ended for one that is stopped at its newest branch.
TEST(ReplayOfEndedThreads, TheyAreThreadsWithAHistory) {
  const TemporaryFolder folder;
  const std::string backtrail = server_command(Peer::kUnderTest)[0];
  const std::string core = folder / "crash.core";
  SpawnOptions options{.arguments = {backtrail, "record", "-o", core, "--", inferior("ended")},
                       .environment = test_environment(),
                       .working_directory = folder.path()};
  Subprocess recorded{options};
  ASSERT_TRUE(recorded.wait(deadline_in(std::chrono::seconds{60})));
  GdbOptions gdb_options;
  gdb_options.symbols = inferior("ended");
  gdb_options.connect = false;
  GdbSession gdb{std::move(gdb_options)};
  gdb.run(fmt::format("target remote | {} replay - {}", backtrail, core));
  // gdb reads other threads when it connects, and for `info threads`: they are not meant.
  gdb.run("reverse-stepi");
  EXPECT_THAT(gdb.run("thread"), HasSubstr("Current thread is 1"));
  EXPECT_THAT(gdb.run("info threads"), HasSubstr("\"spoiler (ended)\""));
  gdb.run("reverse-stepi");
  EXPECT_THAT(gdb.run("thread"), HasSubstr("Current thread is 1"));
  EXPECT_THAT(gdb.run("continue"), at_an_end());
  EXPECT_THAT(gdb.run("thread"), HasSubstr("Current thread is 1"));
  gdb.run("thread 2");
  gdb.run("reverse-stepi");
  EXPECT_THAT(gdb.run("thread"), HasSubstr("Current thread is 2"));
  gdb.run("stepi");
  gdb.run("record btrace");
  EXPECT_THAT(gdb.run("record function-call-history /c 1,+10000"), HasSubstr("spoil()"));
  EXPECT_THAT(gdb.run("tbreak spoil"), HasSubstr("Temporary breakpoint"));
  EXPECT_THAT(gdb.run("reverse-continue"), HasSubstr("spoil () at "));
}

}  // namespace
}  // namespace backtrail::test
