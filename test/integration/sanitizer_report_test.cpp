// SPDX-License-Identifier: Apache-2.0
// The thread that made an error prints the sanitizer's report, in up to tens of millions of
// branches. The branches before the error must still be in the file and on the report's first
// screen.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "report_fixture.hpp"
#include "test/support/effort.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr const char* kProgram = R"(
#include <cstdlib>
#include <cstring>
#include <thread>
volatile long counted;
int shared;
__attribute__((noinline)) int over(int* p, int i) { return p[i]; }
__attribute__((noinline)) void copy(char* to, const char* from, int n) { std::memcpy(to, from, n); }
__attribute__((noinline)) int grow(int x) { return x + 2147483647; }
__attribute__((noinline)) int null(int* p) { return *p; }
__attribute__((noinline)) void bump() { ++shared; }
// Two accesses at the very same time may be missed.
void bumps() { for (int i = 0; i < 1000; ++i) bump(); }
__attribute__((noinline)) void race() { std::thread t{bumps}; bumps(); t.join(); }
int main(int argc, char** argv) {
  const char* how = argv[1];
  const long more = argc > 2 ? std::atol(argv[2]) : 0;
  int* p = new int[4]();
  int r = 0;
  if (how[0] == 'o') r += over(p, 4 + (argc > 9));
  if (how[0] == 'c') copy((char*)p, argv[0], 17);
  if (how[0] == 'g') r += grow(argc);
  if (how[0] == 'n') r += null((int*)(long)(argc > 9));
  if (how[0] == 'r') race();
  for (long i = 0; i < more; ++i) counted = counted + 1;
  delete[] p;
  return more != 0 ? 3 : r & 1;
}
)";

std::string first_screen(const std::string& text) {
  constexpr int kLines = 40;
  std::size_t end = 0;
  for (int i = 0; i < kLines && end != std::string::npos; ++i) end = text.find('\n', end + 1);
  return text.substr(0, end);
}

struct Case {
  std::string compiler;
  std::string flags;
  std::string how;
  std::string function;  ///< Regular expression for the function that makes the error.
  std::string environment = "NOTHING=1";
};
std::ostream& operator<<(std::ostream& out, const Case& shown) {
  return out << shown.compiler << ' ' << shown.flags << " " << shown.how << " "
             << shown.environment;
}

class SanitizerReport : public ReportFixture, public ::testing::WithParamInterface<Case> {
 protected:
  /// Returns false if the compiler or its library is missing, or the program does not run here.
  bool build(const std::string& compiler, const std::string& flags) {
    std::ofstream{folder / "p.cpp"} << kProgram;
    run({"sh", "-c", compiler + " -g -O1 -pthread " + flags + " p.cpp -o p >compiler.log 2>&1"},
        -1);
    if (!std::filesystem::exists(folder / "p")) return false;
    run({"./p", "fine"}, -1);
    return status == 0;
  }
  void keep(const Case& shown, const std::vector<std::string>& options,
            const std::string& more = "0") {
    keep(shown, options, std::vector<std::string>{"./p", shown.how, more});
  }
  void keep(const Case& shown, const std::vector<std::string>& options,
            const std::vector<std::string>& program) {
    std::vector<std::string> words{"env", shown.environment};
    // A sanitized recorder is twenty times slower, and source lines are most of the branches.
    for (const std::string tool : {"ASAN", "TSAN", "UBSAN"}) {
      const std::string name = tool + "_OPTIONS=";
      if (!kSanitized) break;
      if (!shown.environment.starts_with(name)) words.push_back(name + "symbolize=0");
    }
    words.insert(words.end(), {BT_SERVER, "record"});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-o", "x.core", "--"});
    words.insert(words.end(), program.begin(), program.end());
    const std::string said = run(words, -1);
    ASSERT_TRUE(std::filesystem::exists(folder / "x.core")) << said;
  }
  [[nodiscard]] std::string place(const Case& shown) const {
    return "(called at|called from|interrupted) (.*, )?" + shown.function +
           "\\([^)]*\\) p.cpp:[0-9]+";
  }
};

TEST_P(SanitizerReport, NamesTheFunctionAndLineOnItsFirstScreen) {
  const Case& shown = GetParam();
  if (!build(shown.compiler, shown.flags))
    GTEST_SKIP() << shown.compiler << ' ' << shown.flags << " does not work here";
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{}, std::vector<std::string>{"--all"}}) {
    keep(shown, options);
    EXPECT_THAT(first_screen(report()), ContainsRegex(place(shown)));
  }
}

constexpr const char* kAborts =
    kSanitized ? "ASAN_OPTIONS=abort_on_error=1:symbolize=0" : "ASAN_OPTIONS=abort_on_error=1";

INSTANTIATE_TEST_SUITE_P(
    Kinds, SanitizerReport,
    ::testing::ValuesIn(every(
        3, std::vector{
               Case{"g++", "-fsanitize=address", "over", "over"},
               Case{"g++", "-fsanitize=address", "copy", "copy"},
               Case{"g++", "-fsanitize=address", "null", "null"},
               Case{"g++", "-fsanitize=address", "over", "over", "ASAN_OPTIONS=symbolize=0"},
               Case{"g++", "-fsanitize=address", "over", "over", kAborts},
               Case{"clang++", "-fsanitize=address", "over", "over"},
               Case{"clang++", "-fsanitize=address", "copy", "copy"},
               Case{"clang++", "-fsanitize=address", "over", "over", kAborts},
               Case{"g++", "-fsanitize=undefined -fno-sanitize-recover=all", "grow", "grow"},
               Case{"clang++", "-fsanitize=undefined -fno-sanitize-recover=all", "grow", "grow"},
               Case{"g++", "-fsanitize=thread", "race", "bump"},
               Case{"clang++", "-fsanitize=thread", "race", "bump"}})));

class SanitizerReportOfALaterRun : public SanitizerReport {};

TEST_P(SanitizerReportOfALaterRun, NamesTheFunctionAndLineOnItsFirstScreen) {
  const Case& shown = GetParam();
  if (!build(shown.compiler, shown.flags))
    GTEST_SKIP() << shown.compiler << ' ' << shown.flags << " does not work here";
  keep(shown, {}, {"sh", "-c", "./p fine && ./p fine && ./p " + shown.how});
  EXPECT_THAT(first_screen(report()), ContainsRegex(place(shown)));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SanitizerReportOfALaterRun,
                         ::testing::Values(Case{"g++", "-fsanitize=address", "over", "over"}));

class SanitizerReportThatPasses : public SanitizerReport {};

/// The program continues and stays recorded; the cause is kept however long it runs.
TEST_P(SanitizerReportThatPasses, IsKeptWhateverComesAfterwards) {
  const Case& shown = GetParam();
  if (!build(shown.compiler, shown.flags))
    GTEST_SKIP() << shown.compiler << ' ' << shown.flags << " does not work here";
  keep(shown, {"--on", "exit,sanitizer", "--ring", "1M"}, "3000000");
  const std::string text = report();
  EXPECT_THAT(first_screen(text), ContainsRegex(place(shown)));
  EXPECT_THAT(text, ContainsRegex("at least [0-9,]+ older branches were not kept"));
  EXPECT_THAT(report({"--folded", "--branches", "100000000"}),
              AllOf(HasSubstr(";main"), HasSubstr("grow")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SanitizerReportThatPasses,
                         ::testing::Values(Case{"g++", "-fsanitize=undefined", "grow", "grow"},
                                           Case{"clang++", "-fsanitize=undefined", "grow",
                                                "grow"}));

}  // namespace
}  // namespace backtrail::test
