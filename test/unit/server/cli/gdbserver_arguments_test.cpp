// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/server/parsed_command.hpp"

namespace backtrail::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

Command parse(Words words) {
  words.insert(words.begin(), "/usr/bin/backtrail-gdbserver");
  return parse_command_line(words);
}

ServeOptions serve(Words words) {
  return accepted(parse(std::move(words)));
}

PrintAndExit refused(Words words) {
  return refusal(parse(std::move(words)));
}

TEST(GdbserverArguments, CommAndProgram) {
  const ServeOptions options = serve({":0", "./prog", "a", "--once", "-x"});
  EXPECT_EQ(options.comm.host, "127.0.0.1");
  EXPECT_EQ(options.launch.program, "./prog");
  EXPECT_THAT(options.launch.arguments, ElementsAre("a", "--once", "-x"))
      << "options end at the first word that is none";
  EXPECT_FALSE(options.once);
  EXPECT_TRUE(options.as_gdbserver);
  EXPECT_TRUE(options.launch.disable_randomization);
  EXPECT_TRUE(options.launch.through_shell);
}

TEST(GdbserverArguments, Options) {
  const ServeOptions options =
      serve({"--once", "--multi", "--no-disable-randomization", "--no-startup-with-shell",
             "--disable-packet=vCont,T", "--disable-packet=qC", "--source", "step",
             "--debug-file=/tmp/log", "localhost:1", "prog"});
  EXPECT_TRUE(options.once);
  EXPECT_TRUE(options.multi);
  EXPECT_FALSE(options.launch.disable_randomization);
  EXPECT_FALSE(options.launch.through_shell);
  EXPECT_THAT(options.disabled_packets, ElementsAre("T", "qC", "vCont"));
  EXPECT_EQ(options.source, tracee::SourceKind::kStep);
  EXPECT_EQ(options.log_file, "/tmp/log");
}

TEST(GdbserverArguments, LaterOptionsWin) {
  EXPECT_TRUE(serve({"--no-disable-randomization", "--disable-randomization", ":0", "p"})
                  .launch.disable_randomization);
  EXPECT_TRUE(
      serve({"--no-startup-with-shell", "--startup-with-shell", ":0", "p"}).launch.through_shell);
}

TEST(GdbserverArguments, Stdio) {
  for (const char* word : {"-", "stdio"}) {
    const ServeOptions options = serve({word, "prog", "-"});
    EXPECT_EQ(options.comm.kind, CommKind::kStdio);
    EXPECT_TRUE(options.launch.stdio_is_protocol);
    EXPECT_THAT(options.launch.arguments, ElementsAre("-"));
  }
}

TEST(GdbserverArguments, AttachOnBothSidesOfComm) {
  EXPECT_EQ(serve({"--attach", ":0", "123"}).attach, 123);
  EXPECT_EQ(serve({":0", "--attach", "0x10"}).attach, 16);
  EXPECT_EQ(serve({"--once", ":0", "--attach", "010"}).attach, 8);
  EXPECT_EQ(serve({":0", "123"}).attach, std::nullopt) << "a program called 123";
}

TEST(GdbserverArguments, AttachNeedsExactlyOneProcess) {
  for (const Words& words :
       {Words{"--attach", ":0"}, Words{"--attach", ":0", "1", "2"},
        Words{":0", "--attach", "1", "2"}, Words{"--attach", ":0", "abc"},
        Words{"--attach", ":0", "12x"}, Words{"--attach", ":0", "0"}, Words{"--attach", ":0", "-5"},
        Words{"--attach", ":0", ""}, Words{"--attach", ":0", "99999999999"}}) {
    const PrintAndExit exit = refused(words);
    EXPECT_EQ(exit.status, 1);
    EXPECT_THAT(exit.text, StartsWith("Usage:"));
  }
}

TEST(GdbserverArguments, MultiNeedsNoProgram) {
  const ServeOptions options = serve({"--multi", ":0"});
  EXPECT_TRUE(options.multi);
  EXPECT_EQ(options.launch.program, "");
  EXPECT_THAT(refused({":0"}).text, StartsWith("Usage:"));
  EXPECT_THAT(refused({}).text, StartsWith("Usage:"));
  EXPECT_THAT(refused({"--once"}).text, StartsWith("Usage:"));
}

TEST(GdbserverArguments, WrapperEndsAtTwoDashes) {
  const ServeOptions options =
      serve({"--wrapper", "env", "-i", "A=1", "--", "--once", ":0", "prog", "--", "x"});
  EXPECT_THAT(options.launch.wrapper, ElementsAre("env", "-i", "A=1"));
  EXPECT_TRUE(options.once);
  EXPECT_THAT(options.launch.arguments, ElementsAre("--", "x"));
  EXPECT_EQ(refused({"--wrapper", "env"}).status, 1);
  EXPECT_EQ(refused({"--wrapper", "--", ":0", "prog"}).status, 1);
}

TEST(GdbserverArguments, UnknownOptionsAreNamed) {
  const PrintAndExit exit = refused({"--foo", ":0", "prog"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_EQ(exit.text, "Unknown argument: --foo\n");
  EXPECT_EQ(refused({"--once=1", ":0", "prog"}).text, "Unknown argument: --once=1\n");
  EXPECT_EQ(refused({"--", ":0", "prog"}).text, "Unknown argument: --\n");
}

TEST(GdbserverArguments, LogOptionsAddUp) {
  EXPECT_EQ(serve({"--debug", ":0", "p"}).log, "debug");
  EXPECT_EQ(serve({"--remote-debug", "--event-loop-debug", ":0", "p"}).log,
            "rsp:debug,server:debug");
  EXPECT_EQ(serve({"--debug=all,-threads", ":0", "p"}).log, "debug,ptrace:warn");
  EXPECT_EQ(refused({"--debug=foo", ":0", "p"}).text, "Unknown argument: --debug=foo\n");
  EXPECT_EQ(serve({"--debug-format=all,timestamp", ":0", "p"}).log, "");
  EXPECT_EQ(refused({"--debug-format=foo", ":0", "p"}).text,
            "Unknown debug-format argument: \"foo\"\n");
}

TEST(GdbserverArguments, InformationGoesToStdout) {
  for (const char* option :
       {"--help", "--version", "--selftest", "--selftest=x", "--disable-packet"}) {
    const PrintAndExit exit = refused({option});
    EXPECT_EQ(exit.status, 0) << option;
    EXPECT_FALSE(exit.text.empty()) << option;
    EXPECT_EQ(exit.text.back(), '\n') << option;
  }
  EXPECT_THAT(refused({"--disable-packet"}).text, HasSubstr("qfThreadInfo"));
}

TEST(GdbserverArguments, PacketNames) {
  EXPECT_THAT(serve({"--disable-packet=threads", ":0", "p"}).disabled_packets,
              ElementsAre("Tthread", "qC", "qfThreadInfo", "vCont"));
  const PrintAndExit exit = refused({"--disable-packet=vCont,foo", ":0", "p"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.text, StartsWith("Don't know how to disable \"foo\"."));
}

TEST(GdbserverArguments, BadPlacesAreExplained) {
  const PrintAndExit exit = refused({"2345", "prog"});
  EXPECT_EQ(exit.status, 1);
  EXPECT_THAT(exit.text, HasSubstr("write :2345"));
  EXPECT_THAT(exit.text, testing::EndsWith("\nExiting\n"));
}

}  // namespace
}  // namespace backtrail::server
