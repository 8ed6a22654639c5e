// SPDX-License-Identifier: Apache-2.0
// Tests the harness itself against a server that is known to work.
#include "test/support/gdb_session.hpp"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace backtrail::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

GdbOptions gdbserver_on(std::vector<std::string> program) {
  GdbOptions options;
  options.program = std::move(program);
  options.peer = Peer::kGdbserver;
  return options;
}

TEST(GdbSession, RepliesBelongToTheirCommands) {
  GdbSession gdb{gdbserver_on({inferior("calls")})};
  EXPECT_THAT(gdb.run("break fib"), StartsWith("Breakpoint 1 at"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("Breakpoint 1, fib (n="));
  EXPECT_EQ(gdb.value("1 + 1"), "2");
  EXPECT_THAT(gdb.run("nonsense"), HasSubstr("Undefined command"));
  EXPECT_EQ(gdb.value("n > 0"), "1");
}

TEST(GdbSession, ConnectsOverTcp) {
  GdbOptions options = gdbserver_on({inferior("calls")});
  options.wire = Wire::kTcp;
  options.server_options = {"--once"};
  GdbSession gdb{std::move(options)};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("fib 55"));
  EXPECT_TRUE(gdb.quit());
  EXPECT_EQ(gdb.server_exit_status(), 0);
}

TEST(GdbSession, InterruptsWhatRuns) {
  GdbSession gdb{gdbserver_on({inferior("spin")})};
  gdb.start("continue");
  ASSERT_TRUE(gdb.wait_for_server("ready"));
  gdb.interrupt();
  EXPECT_THAT(gdb.finish(), HasSubstr("SIGINT"));
}

TEST(GdbSession, LeavesNothingBehind) {
  {
    GdbSession gdb{gdbserver_on({inferior("spin")})};
    gdb.start("continue");
    ASSERT_TRUE(gdb.wait_for_server("ready"));
    EXPECT_GE(live_descendants().size(), 3U);
  }
  EXPECT_TRUE(live_descendants().empty());
}

TEST(GdbSession, FailsWhenTheTimeIsUp) {
  EXPECT_NONFATAL_FAILURE(
      {
        GdbOptions options = gdbserver_on({inferior("spin")});
        options.time_limit = 1s;
        GdbSession gdb{std::move(options)};
        gdb.run("continue");
        EXPECT_FALSE(gdb.alive());
        EXPECT_EQ(gdb.run("print 1"), "");
      },
      "no answer from gdb in time");
  EXPECT_TRUE(live_descendants().empty());
}

TEST(GdbSession, SeesTheServersEndThroughAPipe) {
  GdbSession gdb{gdbserver_on({inferior("calls")})};
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.quit());
}

TEST(Subprocess, GivesTheWaitStatus) {
  Subprocess child{{.arguments = {"sh", "-c", "cat; exit 7"},
                    .environment = test_environment(),
                    .working_directory = ""}};
  child.write("echoed\n");
  child.close_input();
  const auto status = child.wait(deadline_in(10s));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  EXPECT_EQ(child.output().text(), "echoed\n");
}

TEST(Subprocess, FindsTextThatComesInPieces) {
  Subprocess child{{.arguments = {"sh", "-c", "printf mar; read x; printf ker"},
                    .environment = test_environment(),
                    .working_directory = ""}};
  ASSERT_TRUE(child.output().find("mar", 0, deadline_in(10s)));
  child.write("\n");
  EXPECT_EQ(child.output().find("marker", 0, deadline_in(10s)), 0U);
  EXPECT_EQ(child.output().find("absent", 0, deadline_in(10s)), std::nullopt);
}

}  // namespace
}  // namespace backtrail::test
