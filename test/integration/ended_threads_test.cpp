// SPDX-License-Identifier: Apache-2.0
// Threads that ended before a file is written: every view of the file shows them.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include <gmock/gmock.h>

#include "report_fixture.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// Returns the text that is visible without scrolling.
std::string first_screen(const std::string& text) {
  constexpr int kLines = 40;
  std::size_t end = 0;
  for (int i = 0; i < kLines && end != std::string::npos; ++i) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

class EndedThreads : public ReportFixture {
 protected:
  /// Records the program and leaves x.core.
  void keep(const std::vector<std::string>& options, const std::vector<std::string>& words) {
    std::vector<std::string> all{BT_SERVER, "record", "-o", "x.core"};
    all.insert(all.end(), options.begin(), options.end());
    all.emplace_back("--");
    all.push_back(std::string{BT_INFERIOR_DIR} + "/ended");
    all.insert(all.end(), words.begin(), words.end());
    run(all, -1);
  }
};

TEST_F(EndedThreads, AreInEveryReportAndExport) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, std::vector<std::string>{"--all"}}) {
    keep(options, {});
    EXPECT_THAT(run({BT_SERVER, "info", "x.core"}),
                ContainsRegex(" ended, .* branches .*, spoiler"));
    EXPECT_THAT(report(), AllOf(ContainsRegex("thread [0-9]+ \"spoiler\" \\(ended\\)\n(.*\n)*"
                                              ".*spoil\\(\\)  ended.cpp:"),
                                HasSubstr("=> the thread ended"),
                                // A thread killed by a signal comes first.
                                ContainsRegex("marks calls.*\n\nthread [0-9]+ \"ended\" died\n")));
    EXPECT_THAT(report({"--markdown"}), HasSubstr("spoil()"));
    EXPECT_THAT(report({"--json"}),
                ContainsRegex("\"name\":\"spoiler\",\"died\":false,\"ended\":true,"));
    EXPECT_THAT(report({"--folded"}), ContainsRegex("spoiler [0-9]+ \\(ended\\);.*spoil\\(\\)"));
    EXPECT_THAT(report({"--speedscope"}), HasSubstr("(ended)"));
    EXPECT_THAT(report({"--perfetto"}), HasSubstr("(ended)"));
    report({"--html", "-o", "x.html"});
    std::ifstream page{folder / "x.html"};
    const std::string text{std::istreambuf_iterator<char>{page}, {}};
    EXPECT_THAT(text, AllOf(HasSubstr("id=\"calls1\""), HasSubstr("(ended)")));
  }
}

TEST_F(EndedThreads, TheOneThatFailedStandsFirstWhereNoSignalEndedTheProcess) {
  keep({"--on", "exit"}, {"check"});
  EXPECT_THAT(first_screen(report()),
              AllOf(HasSubstr("exited with status 1"),
                    ContainsRegex("calls.*\n\nthread [0-9]+ \"ended\" \\(ended\\)\n"
                                  "  after pthread_exit, called at check_failed\\(char const\\*\\) "
                                  "ended.cpp:[0-9]+ .*\n"
                                  "    called from half\\(int\\) ended.cpp:[0-9]+")));
  keep({"--on", "exit"}, {"throw"});
  EXPECT_THAT(first_screen(report()),
              AllOf(HasSubstr("exited with status 1"),
                    ContainsRegex("\n  after __cxa_throw, called at third\\(int\\) ended.cpp:")));
  EXPECT_THAT(report({"--json"}), ContainsRegex("\"by\":\"__cxa_throw\",\"callers\":\\["));
}

TEST_F(EndedThreads, OfManyTheFailedAndTheNewestAreShown) {
  keep({"--on", "exit"}, {"check", "100"});
  const std::string text = report();
  EXPECT_THAT(first_screen(text), ContainsRegex("after pthread_exit, called at check_failed"));
  EXPECT_THAT(text, HasSubstr("note: 84 more ended threads are in the file"));
}

TEST_F(EndedThreads, NoMoreAreKeptThanABoundSays) {
  keep({"--on", "exit"}, {"check", "1100"});
  const std::string info = run({BT_SERVER, "info", "x.core"});
  // The program and its live thread have that name too.
  const std::regex ended{"\n  [0-9]+ +ended, "};
  EXPECT_EQ(std::distance(std::sregex_iterator{info.begin(), info.end(), ended}, {}), 1024);
}

TEST_F(EndedThreads, ARustTestThatPanickedIsTold) {
  std::ofstream{folder / "t.rs"} << "pub fn pick(v: &[u32], i: usize) -> u32 { v[i] }\n"
                                    "#[test] fn fine() { assert_eq!(pick(&[1, 2, 3], 1), 2); }\n"
                                    "#[test] fn out_of_bounds() {\n"
                                    "  let i = std::env::args().count() + 2;\n"
                                    "  assert_eq!(pick(&[1, 2, 3], i), 6);\n"
                                    "}\n";
  // Compilers differ in what they leave in a file: a toolchain's own, and the distribution's if
  // that is another one.
  bool is_there = false;
  for (const char* rustc :
       {"rustc", "[ \"$(command -v rustc)\" != /usr/bin/rustc ] && /usr/bin/rustc"}) {
    run({"sh", "-c", std::string{"rm -f t; "} + rustc + " --test -g t.rs -o t >rustc.log 2>&1"},
        -1);
    if (!std::filesystem::exists(folder / "t")) continue;
    is_there = true;
    // A printed backtrace takes up to 28 million branches.
    for (const char* backtrace : {"RUST_BACKTRACE=0", "RUST_BACKTRACE=1"}) {
      run({"env", backtrace, BT_SERVER, "record", "--on", "signal,exit", "-o", "x.core", "--",
           "./t"},
          101);
      EXPECT_THAT(
          first_screen(report()),
          ContainsRegex("thread [0-9]+ \"out_of_bounds\" \\(ended\\)\n"
                        "  after core::panicking::panic_bounds_check.*, called at t::pick.* "
                        "t.rs:1 "))
          << rustc << " " << backtrace;
    }
  }
  if (!is_there) GTEST_SKIP() << "rustc is not there";
}

/// The name of the function in which programs in Rust panic is enough.
constexpr const char* kPanics = R"(
#include <thread>
volatile long counted;
extern "C" __attribute__((noinline)) void rust_begin_unwind() { counted = counted + 1; }
__attribute__((noinline)) void culprit() { rust_begin_unwind(); counted = counted + 1; }
void work() { for (long i = 0; i < 1000000; ++i) if (i % 3 != 1) counted = counted + i; }
int main() {
  std::thread{culprit}.join();
  for (int i = 0; i < 10; ++i) std::thread{work}.join();
  return 3;
}
)";

/// Each has more branches than the bound of all.
constexpr const char* kManyPanics = R"(
#include <thread>
volatile long counted;
extern "C" __attribute__((noinline)) void rust_begin_unwind() { counted = counted + 1; }
__attribute__((noinline)) void culprit() { rust_begin_unwind(); counted = counted + 1; }
__attribute__((noinline)) void work() {
  for (long i = 0; i < 200000; ++i) if (i % 3 != 1) counted = counted + i;
}
int main() {
  for (int i = 0; i < 8; ++i) std::thread{[] { work(); culprit(); work(); }}.join();
  return 3;
}
)";

TEST_F(EndedThreads, OfManyThatPanickedWhatLedToItIsKept) {
  std::ofstream{folder / "p.cpp"} << kManyPanics;
  run({"g++", "-g", "-O1", "-pthread", "p.cpp", "-o", "p"});
  run({BT_SERVER, "record", "--on", "exit", "--ring", "16M", "-o", "x.core", "--", "./p"}, 3);
  const std::string text = report({"--all-threads"});
  const std::regex told{"\n  after rust_begin_unwind, called at culprit\\(\\) p.cpp:5 "};
  EXPECT_EQ(std::distance(std::sregex_iterator{text.begin(), text.end(), told}, {}), 8) << text;
}

TEST_F(EndedThreads, TheOneThatPanickedIsKeptHoweverMuchOthersDoAfterwards) {
  std::ofstream{folder / "p.cpp"} << kPanics;
  run({"g++", "-g", "-O1", "-pthread", "p.cpp", "-o", "p"});
  run({BT_SERVER, "record", "--on", "exit", "--ring", "1M", "-o", "x.core", "--", "./p"}, 3);
  EXPECT_THAT(first_screen(report()),
              ContainsRegex("thread [0-9]+ \"p\" \\(ended\\)\n"
                            "  after rust_begin_unwind, called at culprit\\(\\) p.cpp:5 "));
}

/// A test of one's own that says what failed, and goes on.
constexpr const char* kChecks = R"(
#include <cstdio>
#include <thread>
volatile long counted;
namespace {
__attribute__((noinline)) void assert_failed(int line) { std::fprintf(stderr, "%d\n", line); }
__attribute__((noinline)) void check_parcel(int n) {
  if (n == 3) assert_failed(__LINE__);
}
__attribute__((noinline)) void tally(long i) { if (i % 3 != 1) counted = counted + i; }
}
int main() {
  for (int n = 0; n < 6; ++n) {
    std::thread{[n] { check_parcel(n); for (long i = 0; i < 40000; ++i) tally(i); }}.join();
  }
  return 3;
}
)";

TEST_F(EndedThreads, WhatHasTheNameOfAFailureIsToldAsThat) {
  std::ofstream{folder / "c.cpp"} << kChecks;
  run({"g++", "-g", "-O1", "-pthread", "c.cpp", "-o", "c"});
  run({BT_SERVER, "record", "--on", "exit", "-o", "x.core", "--", "./c"}, 3);
  EXPECT_THAT(first_screen(report()),
              ContainsRegex("calls.*\n\nthread [0-9]+ \"c\" \\(ended\\)\n"
                            "  last call with the name of a failure: .*assert_failed\\(int\\), "
                            "called at .*check_parcel\\(int\\) c.cpp:8 "));
  EXPECT_THAT(report({"--json"}), HasSubstr("\"by_name\":true"));
}

}  // namespace
}  // namespace backtrail::test
