// SPDX-License-Identifier: Apache-2.0
// Connections, and a server's life over several of them.

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(Connections, Tcp) {
  GdbSession gdb{over(Wire::kTcp, on("calls"))};
  gdb.run_all({"break touch_global", "continue"});
  EXPECT_EQ(gdb.value("global"), "7");
  EXPECT_THAT(gdb.server_output(),
              AllOf(ContainsRegex("Process .*/calls created; pid = [0-9]+\nListening on port"),
                    HasSubstr("Remote debugging from host 127.0.0.1")));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("Child exited with status 0"));
  EXPECT_TRUE(gdb.quit());
  EXPECT_EQ(gdb.server_exit_status(), 0);
}

TEST(Connections, UnixSocket) {
  GdbSession gdb{over(Wire::kUnix, on("calls"))};
  gdb.run_all({"break touch_global", "continue"});
  EXPECT_EQ(gdb.value("global"), "7");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.quit());
}

TEST(Connections, ProgramOutputComesThroughThePipe) {
  GdbOptions options = on("calls");
  options.connect = false;
  GdbSession gdb{std::move(options)};
  std::string command;
  for (const std::string& word : server_command(Peer::kUnderTest)) command += word + " ";
  gdb.run("target remote | " + command + "- " + inferior("calls"));
  gdb.start("continue");
  EXPECT_TRUE(gdb.wait_for_gdb("global 9 text after"));
  EXPECT_THAT(gdb.finish(), HasSubstr("exited normally"));
}

TEST(Connections, DisconnectAndComeBack) {
  GdbOptions options = over(Wire::kTcp, on("spin"));
  options.connect = false;
  GdbSession gdb{std::move(options)};
  const std::string connect = gdb.connect_command();
  gdb.run_all({connect, "break wait_outside", "continue"});
  EXPECT_THAT(gdb.run("disconnect"), HasSubstr("Ending remote debugging"));
  gdb.run("delete");
  EXPECT_THAT(gdb.run(connect), HasSubstr("wait_outside"));
  gdb.run("set var go_on = 1");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited with code 03"));
  EXPECT_EQ(count(gdb.server_output(), "Listening on port"), 2);
}

TEST(Connections, OnceMeansOnce) {
  GdbOptions options = over(Wire::kTcp, on("spin"));
  options.server_options = {"--once"};
  GdbSession gdb{std::move(options)};
  gdb.run_all({"break wait_outside", "continue"});
  gdb.run("disconnect");
  EXPECT_TRUE(gdb.wait_for_server_end());
  EXPECT_TRUE(gdb.quit());
}

TEST(Extended, RunsAProgramTwice) {
  GdbOptions options = extended(over(Wire::kTcp, {}));
  options.symbols = inferior("calls");
  GdbSession gdb{std::move(options)};
  gdb.run_all({"set remote exec-file " + inferior("calls"), "break touch_global"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(gdb.run("run 1"), HasSubstr("Breakpoint 1, touch_global"));
    EXPECT_EQ(gdb.value("global"), "7");
    EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  }
  EXPECT_EQ(count(gdb.server_output(), "Child exited with status 0"), 2);
  gdb.run("monitor exit");
  EXPECT_TRUE(gdb.wait_for_server_end());
}

TEST(Extended, RestartsWhileTheProgramRuns) {
  GdbSession gdb{extended(on("calls"))};
  gdb.run_all({"set remote exec-file " + inferior("calls"), "break touch_global", "continue"});
  EXPECT_THAT(gdb.run("run"), HasSubstr("Breakpoint 1, touch_global"));
}

TEST(Extended, FolderEnvironmentAndArguments) {
  GdbOptions options = extended({});
  options.symbols = inferior("environment");
  GdbSession gdb{std::move(options)};
  gdb.run_all({"set remote exec-file " + inferior("environment"), "set cwd /usr",
               "set environment BT_VALUE one two", "set args first 'second word'"});
  EXPECT_THAT(gdb.run("run"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("folder [/usr]"));
  EXPECT_TRUE(gdb.wait_for_server("value [one two]"));
  EXPECT_TRUE(gdb.wait_for_server("argument [first]\nargument [second word]"));
}

TEST(Extended, UnsetEnvironmentAndNoShell) {
  GdbOptions options = extended({});
  options.symbols = inferior("environment");
  options.environment.emplace_back("BT_VALUE=inherited");
  GdbSession gdb{std::move(options)};
  gdb.run("set remote exec-file " + inferior("environment"));
  gdb.run("run");
  EXPECT_TRUE(gdb.wait_for_server("value [inherited]"));
  gdb.run_all({"unset environment BT_VALUE", "set startup-with-shell off", "set args $HOME"});
  gdb.run("run");
  EXPECT_TRUE(gdb.wait_for_server("argument [$HOME]"));
  EXPECT_TRUE(gdb.wait_for_server("value [(unset)]"));
}

TEST(Extended, AProgramThatMayNotBeRun) {
  const TemporaryFolder folder;
  const std::string program = folder.path() + "/calls";
  std::filesystem::copy_file(inferior("calls"), program);
  std::filesystem::permissions(program, std::filesystem::perms::owner_read);
  GdbSession gdb{extended({})};
  gdb.run("file " + program);
  gdb.run_all({"set remote exec-file " + program, "set startup-with-shell off"});
  EXPECT_THAT(gdb.run("run"), AnyOf(HasSubstr("failed"), HasSubstr("Permission denied")));
  EXPECT_TRUE(gdb.wait_for_server("Cannot exec " + program + ": Permission denied"));
}

TEST(Extended, AProgramThatIsNotThere) {
  GdbSession gdb{extended({})};
  gdb.run("set remote exec-file /no/such/program");
  EXPECT_THAT(gdb.run("run"),
              AnyOf(HasSubstr("failed"),
                    HasSubstr("cannot run '/no/such/program': No such file or directory\n")));
  gdb.run("file " + inferior("calls"));
  gdb.run("set remote exec-file " + inferior("calls"));
  EXPECT_THAT(gdb.run("run"), HasSubstr("exited normally"));
}

TEST(Attach, ToAProcessWithThreads) {
  Subprocess program{{.arguments = {inferior("spin"), "4"},
                      .environment = test_environment(),
                      .working_directory = "/"}};
  ASSERT_TRUE(program.output().find("ready", 0, deadline_in(std::chrono::seconds{20})));
  GdbOptions options = extended({});
  options.symbols = inferior("spin");
  {
    GdbSession gdb{std::move(options)};
    gdb.run("attach " + std::to_string(program.pid()));
    EXPECT_EQ(count(gdb.run("info threads"), "\"spin\""), 5);
    gdb.run_all({"break usleep", "continue", "delete"});
    EXPECT_THAT(gdb.run("backtrace"), HasSubstr("wait_outside"));
    gdb.run("set var go_on = 1");
    EXPECT_THAT(gdb.run("detach"), HasSubstr("Detaching"));
    const auto status = program.wait(deadline_in(std::chrono::seconds{20}));
    ASSERT_TRUE(status);
    EXPECT_EQ(WEXITSTATUS(*status), 3);
    EXPECT_THAT(program.output().text(), HasSubstr("survived"));
  }
}

TEST(Attach, AnAttachedProgramSurvivesGdb) {
  Subprocess program{{.arguments = {inferior("spin"), "2"},
                      .environment = test_environment(),
                      .working_directory = "/"}};
  ASSERT_TRUE(program.output().find("ready", 0, deadline_in(std::chrono::seconds{20})));
  GdbOptions options;
  options.symbols = inferior("spin");
  options.server_options = {"--attach"};
  options.wire = Wire::kPipe;
  options.connect = false;
  GdbSession gdb{std::move(options)};
  std::string command;
  for (const std::string& word : server_command(Peer::kUnderTest)) command += word + " ";
  gdb.run("target remote | " + command + "--attach - " + std::to_string(program.pid()));
  EXPECT_EQ(count(gdb.run("info threads"), "\"spin\""), 3);
  gdb.run("set var go_on = 1");
  EXPECT_TRUE(gdb.quit());
  const auto status = program.wait(deadline_in(std::chrono::seconds{20}));
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

TEST(Attach, ToNoProcessSaysWhy) {
  GdbSession gdb{extended({})};
  EXPECT_THAT(gdb.run("attach 999999999"), HasSubstr("failed"));
  EXPECT_TRUE(gdb.alive());
}

TEST(Files, GoBothWays) {
  GdbSession gdb{on("calls")};
  const std::string copy = "/tmp/backtrail-copy-" + std::to_string(::getpid());
  EXPECT_THAT(gdb.run("remote put " + inferior("calls") + " " + copy), HasSubstr("Successfully"));
  EXPECT_THAT(gdb.run("remote get " + copy + " " + copy + ".back"), HasSubstr("Successfully"));
  EXPECT_THAT(gdb.run("shell cmp " + inferior("calls") + " " + copy + ".back && echo same"),
              HasSubstr("same"));
  EXPECT_THAT(gdb.run("remote delete " + copy), HasSubstr("Successfully"));
  EXPECT_THAT(gdb.run("remote delete " + copy), HasSubstr("No such file"));
  gdb.run("shell rm -f " + copy + ".back");
}

}  // namespace
}  // namespace backtrail::test
