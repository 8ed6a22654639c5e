// SPDX-License-Identifier: Apache-2.0
// `backtrail report` on crashing programs.
#include <algorithm>
#include <filesystem>
#include <regex>

#include <gmock/gmock.h>

#include "decoder/symbols/symbols.hpp"
#include "elf_symbols.hpp"
#include "report_fixture.hpp"
#include "test/support/lldb.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Report = test::ReportFixture;

TEST_F(Report, TellsWhatWasCalledBeforeTheFault) {
  record("crashes", {"null"});
  EXPECT_THAT(
      report(),
      AllOf(HasSubstr("died of SIGSEGV: access to unmapped memory at 0x0"),
            ContainsRegex(
                "at fault crashes.c:[0-9]+ \\(0x[0-9a-f]+ = crashes\\+0x[0-9a-f]+\\): movl"),
            ContainsRegex("> +main( .*)?\n(.*\n)*  > +fault  crashes.c:[0-9]+\n"),
            // The report hides the dynamic linker's search for puts() and others, whatever debug
            // files exist.
            Not(ContainsRegex("> +main( .*)?\n(.*\n)*.*(ld-linux|_dl_fixup)")),
            HasSubstr("=> SIGSEGV at fault crashes.c:")));
}

TEST_F(Report, BeginsAtMain) {
  record("crashes", {"null"});
  EXPECT_THAT(report(), AllOf(ContainsRegex("recorded branches\n    \\.\\.\\. [0-9,]+ earlier "
                                            "\\.\\.\\.\n  > main[ \n]"),
                              Not(HasSubstr("__libc_start_main"))));
  EXPECT_THAT(report({"--json"}), HasSubstr("\"function\":\"_start\""));
}

TEST_F(Report, ASummaryIsAScreenAndASignatureALine) {
  record("crashes", {"reraise-late"});
  const std::string text = report({"--summary"});
  EXPECT_THAT(text, AllOf(HasSubstr("died of SIGSEGV"), ContainsRegex("  > +fault  crashes.c:"),
                          HasSubstr("=> SIGSEGV at ")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 50);
  EXPECT_EQ(report({"--signature"}), "SIGSEGV fault < main\n");
  EXPECT_THAT(report({"--json"}), HasSubstr("\"signature\":\"SIGSEGV fault < main\""));
  record("crashes", {"waiting", "2"});
  EXPECT_EQ(report({"--signature"}), "SIGSEGV fault < faulting_thread\n");
  EXPECT_THAT(report({"--summary"}), HasSubstr("3 other threads are not shown\n"));
  record("crashes", {"abort"});
  EXPECT_EQ(report({"--signature"}), "SIGABRT main\n");
}

TEST_F(Report, ThreadsThatDoTheSameAreShownOnce) {
  record("crashes", {"waiting", "40"});
  const std::string text = report();
  EXPECT_THAT(text, AllOf(ContainsRegex("  and [0-9]+ more threads in the same calls: [0-9]+ "),
                          HasSubstr("there are 42 threads; --all-threads shows each")));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 200);
  const std::string all = report({"--all-threads"});
  EXPECT_EQ(all.find("more thread"), std::string::npos);
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 250);
}

TEST_F(Report, FollowsASmashedPointerAfterExceptionsInAThread) {
  record("smash", {});
  EXPECT_THAT(report({"--calls", "1000"}),
              AllOf(ContainsRegex("from run_order\\(Order&\\) smash.cpp:[0-9]+ .*call"),
                    ContainsRegex("set_customer\\(Order&, char const\\*\\)  smash.cpp:46\n"),
                    ContainsRegex("check_name\\(char const\\*\\)  smash.cpp:[0-9]+  "
                                  "\\(left by an exception or longjmp\\)"),
                    ContainsRegex("  smash.cpp:33  x 24"),
                    ContainsRegex("> +run_order\\(Order&\\)  smash.cpp:47\n")));
}

TEST_F(Report, ABranchToWhatIsNoAddressFaultsItself) {
  record("smash", {"a customer of a very long name"});
  EXPECT_THAT(report(),
              AllOf(ContainsRegex("\n  at run_order\\(Order&\\) smash.cpp:39 .*: call"),
                    Not(HasSubstr("\n  from ")),
                    ContainsRegex("> +run_order\\(Order&\\)  smash.cpp:[0-9]+\n  => SIG")));
}

TEST_F(Report, CountsRecursionInsteadOfPrintingIt) {
  record("crashes", {"overflow"});
  EXPECT_THAT(report({"--calls", "5"}),
              AllOf(ContainsRegex("deeper  crashes.c:[0-9]+  recursive, [0-9,]+ deep"),
                    HasSubstr("possible stack overflow")));
}

TEST_F(Report, CountsRoundsOfFunctionsThatCallEachOther) {
  record("crashes", {"circle", "700"});
  EXPECT_THAT(report({"--calls", "5"}),
              AllOf(ContainsRegex(
                  "> +ping  crashes.c:[0-9]+\n  > +pong  crashes.c:[0-9]+\n  > +"
                  "\\.\\.\\. 699 more rounds of ping, pong \\.\\.\\.\n  > +ping  crashes.c")));
}

TEST_F(Report, SignalHandlersAreMarked) {
  record("crashes", {"reraise"});
  EXPECT_THAT(report({"--calls", "100"}), ContainsRegex("reraise  .*\\(signal handler\\)"));
}

TEST_F(Report, WhatAHandlerInterruptedIsShownHoweverMuchTheHandlerDid) {
  record("crashes", {"reraise-late"});
  EXPECT_THAT(
      report(),
      AllOf(ContainsRegex("\n  in a signal handler, which interrupted fault crashes.c:[0-9]+ "
                          "\\(0x[0-9a-f]+ = crashes\\+0x[0-9a-f]+\\): movl"),
            ContainsRegex("> +main( .*)?\n(.*\n)*  > +fault  crashes.c:[0-9]+\n"
                          "  => a signal at fault crashes.c:[0-9]+; its handler's last calls:\n"
                          "    \\.\\.\\. [0-9,]+ earlier \\.\\.\\.\n(.*\n)*"
                          "  > +raise .*\n(.*\n)*  => SIGSEGV at ")));
  EXPECT_THAT(report({"--json"}),
              ContainsRegex("\"interrupted\":\\{\"at\":\\{[^}]*\"function\":\"fault\""));
}

TEST_F(Report, TheHeaderNamesWhatAHandlerWasCalledFor) {
  record("crashes", {"reraise"});
  EXPECT_THAT(report(),
              ContainsRegex("died of SIGSEGV: access to unmapped memory at 0x0 [^\n]*; its handler "
                            "raised it again\n"));
  record("crashes", {"abort-late"});
  EXPECT_THAT(report(), HasSubstr("died of SIGABRT, raised in the handler of SIGSEGV: access to "
                                  "unmapped memory at 0x0 "));
  EXPECT_THAT(report({"--json"}),
              HasSubstr("\"first_signal\":{\"number\":11,\"name\":\"SIGSEGV\""));
  EXPECT_EQ(report({"--signature"}), "SIGSEGV fault < main\n");
}

TEST_F(Report, CallsBeforeAHandlerThatReturnedToTheFaultAreShown) {
  record("crashes", {"return-late"});
  EXPECT_THAT(report(),
              AllOf(HasSubstr("\n  after a signal handler, which ran here and returned\n"),
                    ContainsRegex("> +main( .*)?\n(.*\n)*  > +fault  crashes.c:[0-9]+\n"
                                  "  => a signal at fault crashes.c:[0-9]+; its handler's"),
                    HasSubstr("  => SIGSEGV at fault crashes.c")));
}

TEST_F(Report, SaysHowItEndedWhereThatWasNoSignal) {
  run({BT_SERVER, "record", "--on", "exit", "-o", "x.core", "--", "sh", "-c", "exit 3"}, -1);
  EXPECT_THAT(report(), ContainsRegex("program .* exited with status 3\n"));
  EXPECT_THAT(report({"--json"}), HasSubstr("\"ending\":\"exited with status 3\""));
  run({BT_SERVER, "record", "--on", "timeout=0.5", "-o", "x.core", "--", "sleep", "100"}, -1);
  EXPECT_THAT(report(), ContainsRegex("program .* was stopped at its time limit\n"));
}

TEST_F(Report, SaysWhatIsNoCode) {
  record("crashes", {"jump0"});
  EXPECT_THAT(report(), AllOf(HasSubstr("at unknown code (0x0)"),
                              ContainsRegex("from main crashes.c:[0-9]+ .*: call")));
}

TEST_F(Report, NamesOfCodeThatTheProgramMade) {
  const std::string said = run(
      {BT_SERVER, "record", "-o", "x.core", "--", std::string{BT_INFERIOR_DIR} + "/made_code"}, -1);
  std::smatch process;
  ASSERT_TRUE(std::regex_search(said, process, std::regex{"process ([0-9]+)"})) << said;
  std::filesystem::remove("/tmp/perf-" + process[1].str() + ".map");
  EXPECT_THAT(
      report(),
      AllOf(HasSubstr("=> SIGSEGV at JS:inner <b> app.js:9"),
            ContainsRegex("> +main( .*)?\n(.*\n)*  > +JS:outer app.js:3 \\(or what was there "
                          "before\\)  made_code.c:[0-9]+\n  > +JS:inner <b> app.js:9\n")));
  EXPECT_THAT(run({BT_SERVER, "info", "x.core"}), HasSubstr("\nnames    2 of generated code\n"));
}

TEST_F(Report, NamesOf32BitPrograms) {
  if (!std::filesystem::exists(std::string{BT_INFERIOR_DIR} + "/crashes32_static")) {
    GTEST_SKIP() << "no 32-bit programs here";
  }
  record("crashes32_static", {"null"}, "step");
  EXPECT_THAT(report(), ContainsRegex("  > +fault  crashes.c:[0-9]+\n"));
}

TEST_F(Report, LldbAttachesToAReplay) {
  const auto lldb = test::newest_lldb();
  if (!lldb) GTEST_SKIP() << "no lldb here";
  record("crashes", {"null"});
  // Without a plugin's name lldb 14 gives up.
  const std::string script =
      "\"$0\" replay unix:s x.core >replay.txt 2>&1 & until [ -S s ]; do sleep 0.1; done;"
      "PYTHONPATH=" +
      lldb->python_path + " timeout 60 " + lldb->command +
      " --no-lldbinit -b -o \"process connect --plugin gdb-remote unix-connect://$PWD/s\" -o bt "
      "\"$1\" 2>&1; kill $! 2>/dev/null; wait";
  EXPECT_THAT(run({"sh", "-c", script, BT_SERVER, std::string{BT_INFERIOR_DIR} + "/crashes"}, -1),
              AllOf(HasSubstr("signal SIGSEGV"), ContainsRegex("frame #0: [^\n]* crashes`fault"),
                    ContainsRegex("frame #[0-9]+: [^\n]* crashes`main")));
}

TEST_F(Report, MachinesAndPagesGetTheirForms) {
  record("crashes", {"null"});
  const std::string json = report({"--json"});
  EXPECT_THAT(json, AllOf(HasSubstr("\"format\":\"backtrail-report\""),
                          ContainsRegex("\"function\":\"fault\"[^}]*\"end\":\"open\"")));
  EXPECT_THAT(report({"--markdown"}), HasSubstr("<details open>"));
  EXPECT_EQ(report({"--json", "-o", "out.json"}), "");
  EXPECT_EQ(std::filesystem::file_size(folder / "out.json"), json.size());
  run({BT_SERVER, "report", "x.core", "--json", "--markdown"}, 1);
  EXPECT_THAT(run({BT_SERVER, "report", "x.core", "-o", "/nowhere/x"}, 1), HasSubstr("/nowhere/x"));
}

TEST_F(Report, AMissingProgramIsNamedByItsFile) {
  const std::string program = folder / "gone";
  std::filesystem::copy_file(std::string{BT_INFERIOR_DIR} + "/crashes", program);
  run({BT_SERVER, "record", "--source", "cache", "-o", "x.core", "--", program, "null"}, -1);
  std::filesystem::remove(program);
  EXPECT_THAT(report(), AllOf(HasSubstr("gone is not there"), ContainsRegex("gone\\+0x[0-9a-f]+"),
                              Not(HasSubstr("crashes.c"))));
  std::filesystem::create_directories(folder / ("files" + folder.path()));
  std::filesystem::copy_file(std::string{BT_INFERIOR_DIR} + "/crashes",
                             folder / ("files" + program));
  EXPECT_THAT(report({"--files", "files"}), HasSubstr("=> SIGSEGV at fault"));
}

TEST_F(Report, APackedFileNeedsNothingElse) {
  const std::string program = folder / "packed";
  std::filesystem::copy_file(std::string{BT_INFERIOR_DIR} + "/crashes", program);
  run({BT_SERVER, "record", "--source", "cache", "-o", "x.core", "--", program, "null"}, -1);
  run({BT_SERVER, "pack", "x.core"});
  std::filesystem::remove(program);
  std::filesystem::remove(folder / "x.core");
  EXPECT_THAT(run({BT_SERVER, "report", "x.core.tar.zst"}), HasSubstr("=> SIGSEGV at fault"));
}

TEST(ElfSymbols, NamesLinesAndStubs) {
  const std::string path = std::string{BT_INFERIOR_DIR} + "/crashes";
  const std::uint64_t bias = 0x10000000;
  decoder::LoadedModule module{
      path, path, {}, {{TraceeAddr{bias}, TraceeAddr{bias + 0x100000}, 0}}};
  const auto symbols = decoder::make_elf_symbols({module});
  const TraceeAddr fault{bias + read_elf_symbols(path).at("fault")};
  const decoder::FunctionRef function = symbols->at(fault + 3);
  EXPECT_EQ(function.entry, fault);
  EXPECT_FALSE(function.stub);
  EXPECT_EQ(symbols->function_name(function.id), "fault");
  const decoder::SourceLine line = symbols->line_at(fault);
  EXPECT_THAT(symbols->text(line.file), HasSubstr("crash/crashes.c"));
  EXPECT_GT(line.line, 10U);
  EXPECT_EQ(symbols->frames_at(fault).size(), 1U);
  EXPECT_THAT(symbols->module_place(fault), HasSubstr("crashes+0x"));
  EXPECT_FALSE(symbols->at(TraceeAddr{0x42}).known());
  EXPECT_EQ(symbols->frames_at(TraceeAddr{0x42}).front().name, 0U);
  std::size_t stubs = 0;
  for (std::uint64_t at = 0; at < 0x3000; at += 8) {
    const decoder::FunctionRef ref = symbols->at(TraceeAddr{bias + at});
    if (ref.stub && symbols->function_name(ref.id) == "puts@plt") ++stubs;
  }
  EXPECT_GT(stubs, 0U);
}

}  // namespace
}  // namespace backtrail::tracee
