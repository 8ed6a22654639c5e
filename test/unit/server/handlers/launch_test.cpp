// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class LaunchTest : public SessionTest {
 protected:
  LaunchTest() { offer_all(); }

  /// Sends vRun and captures its notice on the terminal.
  std::string run(const std::string& packet) {
    ::testing::internal::CaptureStderr();
    std::string reply = ask(packet);
    notice = ::testing::internal::GetCapturedStderr();
    return reply;
  }

  std::string notice;
};

TEST_F(LaunchTest, StartsAProgram) {
  EXPECT_THAT(run("vRun;" + hex("./prog") + ";" + hex("a") + ";" + hex("b c")),
              StartsWith("T0506:"));
  EXPECT_EQ(notice, "Process ./prog created; pid = 1001\n");
  ASSERT_EQ(target.launches.size(), 1U);
  EXPECT_EQ(target.launches[0].program, "./prog");
  EXPECT_THAT(target.launches[0].arguments, ElementsAre("a", "'b c'"));
  EXPECT_EQ(ask("qC"), "QCp3e9.3e9");
}

TEST_F(LaunchTest, AnEmptyNameIsTheLastProgram) {
  EXPECT_EQ(run("vRun;"), "E01");
  state.launch.program = "/bin/last";
  EXPECT_THAT(run("vRun;;" + hex("x")), StartsWith("T05"));
  EXPECT_EQ(target.launches[0].program, "/bin/last");
  EXPECT_THAT(target.launches[0].arguments, ElementsAre("x"));
}

TEST_F(LaunchTest, TheShellReadsArgumentsBackAsTheyWere) {
  run("vRun;" + hex("p") + ";" + hex("it's") + ";" + hex("two\nlines") + ";" + hex("$HOME") + ";");
  EXPECT_THAT(target.launches[0].arguments,
              ElementsAre("'it'\\''s'", "'two\nlines'", "'$HOME'", "''"));
}

TEST_F(LaunchTest, WithoutShellArgumentsAreLiteral) {
  ask("QStartupWithShell:0");
  run("vRun;" + hex("p") + ";" + hex("it's") + ";");
  EXPECT_THAT(target.launches[0].arguments, ElementsAre("it's", ""));
}

TEST_F(LaunchTest, FailsByNumberOrByText) {
  target.launch_error = errno_error(ENOENT, "chdir");
  state.launch.working_directory = "/gone";
  EXPECT_EQ(run("vRun;" + hex("p")), "E01");
  EXPECT_EQ(notice,
            "Cannot exec p: No such file or directory\n"
            "/gone: cannot change to this working directory: No such file or directory\n");
  ask("qSupported:error-message+");
  EXPECT_THAT(run("vRun;" + hex("p")), StartsWith("E.cannot run 'p': "));
  target.launch_error = make_error(TraceErrc::kStartupFailed, "start-up", 126 << 8);
  EXPECT_EQ(run("vRun;" + hex("p")), "E.During startup program exited with code 126.");
}

TEST_F(LaunchTest, OneProcessIsEnoughWithoutTheExtendedProtocol) {
  target.add_process(1);
  EXPECT_EQ(run("vRun;" + hex("p")), "E01");
  EXPECT_EQ(notice, "Already debugging a process\n");
  EXPECT_THAT(target.launches, IsEmpty());
}

TEST_F(LaunchTest, RefusesNamesThatAreNone) {
  for (const char* bad : {"vRun;7", "vRun;zz", "vRun;00", "vRun;61;6"}) {
    EXPECT_EQ(run(bad), "E01") << bad;
  }
}

TEST_F(LaunchTest, RestartsInTheExtendedProtocol) {
  EXPECT_EQ(ask("R00"), "");
  ask("!");
  target.add_process(1);
  state.launch.program = "/bin/last";
  EXPECT_EQ(run("R00"), "(none)");
  EXPECT_THAT(target.killed, ElementsAre(1));
  EXPECT_EQ(target.launches.size(), 1U);
  EXPECT_THAT(ask("?"), StartsWith("T05"));
}

TEST_F(LaunchTest, ChangesTheEnvironment) {
  ::setenv("BT_LAUNCH_TEST", "inherited", 1);
  EXPECT_EQ(state.launch.environment, std::nullopt);
  EXPECT_EQ(ask("QEnvironmentHexEncoded:" + hex("A=1=2")), "OK");
  ASSERT_TRUE(state.launch.environment);
  EXPECT_THAT(*state.launch.environment, Contains("A=1=2"));
  EXPECT_THAT(*state.launch.environment, Contains("BT_LAUNCH_TEST=inherited"));
  EXPECT_EQ(ask("QEnvironmentHexEncoded:" + hex("A=3")), "OK");
  EXPECT_THAT(*state.launch.environment, Contains("A=3"));
  EXPECT_THAT(*state.launch.environment, Not(Contains("A=1=2")));
  EXPECT_EQ(ask("QEnvironmentUnset:" + hex("BT_LAUNCH_TEST")), "OK");
  EXPECT_THAT(*state.launch.environment, Not(Contains("BT_LAUNCH_TEST=inherited")));
  EXPECT_EQ(ask("QEnvironmentReset"), "OK");
  EXPECT_EQ(state.launch.environment, std::nullopt);
  for (const char* bad : {"QEnvironmentHexEncoded:4141", "QEnvironmentHexEncoded:3d41",
                          "QEnvironmentHexEncoded:", "QEnvironmentHexEncoded:4",
                          "QEnvironmentUnset:", "QEnvironmentUnset:z"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(LaunchTest, FindsHomeDirectories) {
  ASSERT_EQ(::setenv("HOME", "/tmp", 1), 0);
  const std::pair<const char*, const char*> cases[] = {
      {"~/sub", "/tmp/sub"},  {"~", "/tmp"},
      {"~root/x", "/root/x"}, {"~no such user/x", "~no such user/x"},
      {"/x/~", "/x/~"},
  };
  for (const auto& [sent, directory] : cases) {
    EXPECT_EQ(ask("QSetWorkingDir:" + hex(sent)), "OK");
    EXPECT_EQ(state.launch.working_directory, directory) << sent;
  }
}

TEST_F(LaunchTest, ChangesHowProgramsStart) {
  EXPECT_EQ(ask("QSetWorkingDir:" + hex("/tmp")), "OK");
  EXPECT_EQ(state.launch.working_directory, "/tmp");
  EXPECT_EQ(ask("QSetWorkingDir:"), "OK");
  EXPECT_EQ(state.launch.working_directory, "");
  EXPECT_EQ(ask("QStartupWithShell:0"), "OK");
  EXPECT_FALSE(state.launch.through_shell);
  EXPECT_EQ(ask("QStartupWithShell:2"), "E01");
  EXPECT_EQ(ask("QDisableRandomization:0"), "OK");
  EXPECT_FALSE(state.launch.disable_randomization);
  EXPECT_EQ(ask("QDisableRandomization:1"), "OK");
  EXPECT_TRUE(state.launch.disable_randomization);
  EXPECT_EQ(ask("QDisableRandomization:"), "E01");
}

}  // namespace
}  // namespace backtrail::server
