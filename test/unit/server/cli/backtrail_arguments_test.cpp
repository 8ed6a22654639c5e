// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/server/parsed_command.hpp"

namespace backtrail::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Command parse(Words words) {
  words.insert(words.begin(), "build/release/backtrail");
  return parse_command_line(words);
}

ServeOptions serve(Words words) {
  words.insert(words.begin(), "serve");
  return accepted(parse(std::move(words)));
}

PrintAndExit refused(Words words) {
  return refusal(parse(std::move(words)));
}

TEST(BacktrailArguments, ServesAProgram) {
  const ServeOptions options =
      serve({"--once", "--source", "step", ":2345", "./prog", "--help", "-x", "--", "y"});
  EXPECT_EQ(options.comm.port, 2345);
  EXPECT_TRUE(options.once);
  EXPECT_EQ(options.source, tracee::SourceKind::kStep);
  EXPECT_EQ(options.launch.program, "./prog");
  EXPECT_THAT(options.launch.arguments, ElementsAre("--help", "-x", "--", "y"));
  EXPECT_FALSE(options.as_gdbserver);
}

TEST(BacktrailArguments, TakesEqualsSigns) {
  const ServeOptions options = serve({"--source=cache", "--log=rsp:debug", ":0", "p"});
  EXPECT_EQ(options.source, tracee::SourceKind::kCache);
  EXPECT_EQ(options.log, "rsp:debug");
}

TEST(BacktrailArguments, ValuesAreRecordedByTheCache) {
  EXPECT_EQ(serve({":0", "p"}).values, tracee::ValueDepth::kFree);
  const ServeOptions options = serve({"--values", "most", ":0", "p"});
  EXPECT_EQ(options.values, tracee::ValueDepth::kMost);
  EXPECT_EQ(options.source, tracee::SourceKind::kCache);
  EXPECT_THAT(refused({"serve", "--values=most", "--source=step", ":0", "p"}).text,
              HasSubstr("--values=most needs --source cache"));
  EXPECT_EQ(serve({"--values=all", ":0", "p"}).values, tracee::ValueDepth::kAll);
  EXPECT_THAT(refused({"serve", "--values=all", "--source=step", ":0", "p"}).text,
              HasSubstr("--values=all needs --source cache"));
  EXPECT_THAT(refused({"serve", "--values=some", ":0", "p"}).text, HasSubstr("--values"));
}

TEST(BacktrailArguments, Stdio) {
  const ServeOptions options = serve({"-", "prog"});
  EXPECT_EQ(options.comm.kind, CommKind::kStdio);
  EXPECT_TRUE(options.launch.stdio_is_protocol);
}

TEST(BacktrailArguments, Attaches) {
  EXPECT_EQ(serve({"--attach", ":0", "42"}).attach, 42);
  EXPECT_EQ(serve({":0", "--attach", "42"}).attach, 42);
  EXPECT_EQ(refused({"serve", "--attach", ":0", "x"}).status, 1);
}

TEST(BacktrailArguments, RandomizationAndShell) {
  const ServeOptions off =
      serve({"--no-disable-randomization", "--no-startup-with-shell", ":0", "p"});
  EXPECT_FALSE(off.launch.disable_randomization);
  EXPECT_FALSE(off.launch.through_shell);
  const ServeOptions on = serve({"--disable-randomization", "--startup-with-shell", ":0", "p"});
  EXPECT_TRUE(on.launch.disable_randomization);
  EXPECT_TRUE(on.launch.through_shell);
  EXPECT_TRUE(serve({":0", "p"}).launch.disable_randomization);
}

TEST(BacktrailArguments, WrapperBeforeAndAfterOtherOptions) {
  const ServeOptions options = serve({"--source", "step", "--wrapper", "env", "-i", "--", "--once",
                                      ":0", "prog", "--wrapper", "x"});
  EXPECT_THAT(options.launch.wrapper, ElementsAre("env", "-i"));
  EXPECT_TRUE(options.once);
  EXPECT_THAT(options.launch.arguments, ElementsAre("--wrapper", "x"));
  EXPECT_EQ(refused({"serve", "--wrapper", "env"}).status, 1);
}

TEST(BacktrailArguments, Multi) {
  EXPECT_TRUE(serve({"--multi", ":0"}).multi);
  EXPECT_THAT(refused({"serve", ":0"}).text, HasSubstr("needs COMM and a program"));
}

RecordOptions record(Words words) {
  words.insert(words.begin(), "record");
  const Command command = parse(std::move(words));
  if (const auto* exit = std::get_if<PrintAndExit>(&command)) {
    ADD_FAILURE() << "refused: " << exit->text;
    return {};
  }
  return std::get<RecordOptions>(command);
}

TEST(BacktrailArguments, RecordsAProgram) {
  const RecordOptions options =
      record({"--stats", "--ring", "512k", "--source", "step", "--", "prog", "--stats", "--", "x"});
  EXPECT_EQ(options.launch.program, "prog");
  EXPECT_THAT(options.launch.arguments, ElementsAre("--stats", "--", "x"));
  EXPECT_TRUE(options.launch.transparent);
  EXPECT_FALSE(options.launch.through_shell);
  EXPECT_TRUE(options.recorder.statistics);
  EXPECT_EQ(options.recorder.ring_bytes, 512U * 1024);
  EXPECT_EQ(options.recorder.source, tracee::SourceKind::kStep);
  EXPECT_EQ(record({"p"}).recorder.ring_bytes, 64U << 20U);
  EXPECT_EQ(record({"p"}).recorder.source, tracee::SourceKind::kCache);
  EXPECT_EQ(record({"--source", "perf-pt", "p"}).recorder.source, tracee::SourceKind::kPerfPt);
  EXPECT_TRUE(record({"--source", "lbr", "p"}).recorder.traced);
  EXPECT_FALSE(record({"--source", "none", "p"}).recorder.traced);
}

TEST(BacktrailArguments, RecordRefusesWhatItDoesNotKnow) {
  for (const Words& words :
       {Words{"record"}, Words{"record", "--"}, Words{"record", "--ring", "0", "p"},
        Words{"record", "--ring", "9999999T", "p"}, Words{"record", "--foo", "p"},
        Words{"record", "--source", "magic", "p"}}) {
    EXPECT_EQ(refused(words).status, 1);
  }
}

TEST(BacktrailArguments, MistakesAreExplained) {
  EXPECT_THAT(refused({"serve", "--foo", ":0", "p"}).text, HasSubstr("--foo"));
  EXPECT_THAT(refused({"serve", "--source", "magic", ":0", "p"}).text, HasSubstr("magic"));
  EXPECT_THAT(refused({"serve", "1234", "p"}).text, HasSubstr("write :1234"));
  for (const Words& words :
       {Words{}, Words{"unheard-of"}, Words{"serve"}, Words{"serve", "--source"}}) {
    EXPECT_EQ(refused(words).status, 1);
    EXPECT_FALSE(refused(words).text.empty());
  }
}

TEST(BacktrailArguments, HelpIsThatOfTheSubcommand) {
  EXPECT_THAT(refused({"decode", "--base", "x", "--ds-format", "core2", "f"}).text,
              HasSubstr("'backtrail decode --help'"));
  EXPECT_THAT(refused({"replay", ":99999999", "f"}).text, HasSubstr("'backtrail replay --help'"));
  for (const char* command : {"replay", "info", "pack", "report"}) {
    EXPECT_EQ(refused({command}).text, fmt::format("backtrail: FILE is required\n'backtrail {} "
                                                   "--help' lists the options.\n",
                                                   command));
  }
  EXPECT_THAT(refused({"record"}).text, HasSubstr("'backtrail record --help'"));
  EXPECT_THAT(refused({"serve", "--source", "magic", ":0", "p"}).text,
              HasSubstr("'backtrail serve --help'"));
  EXPECT_THAT(refused({"tail"}).text, HasSubstr("'backtrail tail --help'"));
  EXPECT_THAT(refused({"decode", "--ds-format", "x", "f"}).text,
              HasSubstr("'backtrail decode --help'"));
  EXPECT_THAT(refused({"serve"}).text, HasSubstr("'backtrail serve --help'"));
}

TEST(BacktrailArguments, InformationGoesToStdout) {
  EXPECT_EQ(refused({"--help"}).status, 0);
  EXPECT_THAT(refused({"--help"}).text, HasSubstr("serve"));
  EXPECT_EQ(refused({"serve", "--help"}).status, 0);
  EXPECT_THAT(refused({"serve", "--help"}).text, HasSubstr("COMM"));
  EXPECT_EQ(refused({"--version"}).status, 0);
  EXPECT_THAT(refused({"--version"}).text, HasSubstr("backtrail"));
}

TEST(BacktrailArguments, WarmTakesPrograms) {
  const auto options = std::get<WarmOptions>(parse({"warm", "true", "/bin/sh"}));
  EXPECT_EQ(options.programs, (std::vector<std::string>{"true", "/bin/sh"}));
  EXPECT_EQ(refused({"warm"}).status, 1);
}

TEST(BacktrailArguments, Doctor) {
  EXPECT_TRUE(std::holds_alternative<DoctorOptions>(parse({"doctor"})));
  EXPECT_EQ(refused({"doctor", "now"}).status, 1);
}

}  // namespace
}  // namespace backtrail::server
