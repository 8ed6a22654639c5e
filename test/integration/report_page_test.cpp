// SPDX-License-Identifier: Apache-2.0
// The page of `backtrail report --html` in a browser: its first view, keys and mouse.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "report_fixture.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportPage : public test::ReportFixture {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_browser(); !why.empty()) GTEST_SKIP() << why;
  }
  /// Returns the output of page_walk.html, one fact a line.
  std::string walk(const std::string& name, const std::vector<std::string>& arguments = {},
                   const std::vector<std::string>& options = {"--html"}) {
    record(name, arguments);
    std::ofstream{folder / "x.html"} << report(options) + run({"cat", BT_PAGE_WALK});
    const std::string dom = dom_of("x.html");
    std::string told = dom.substr(std::min(dom.find("<pre id=\"told\">"), dom.size()));
    EXPECT_THAT(told, AllOf(HasSubstr("cause: "), HasSubstr("help: true; true"),
                            Not(HasSubstr("failed: "))));
    return told;
  }
};

/// Checks that the page opens at the last calls before the crash.
void expect_opening(const std::string& told) {
  EXPECT_THAT(told, ContainsRegex("cause: SIGSEGV: [^\n]* in number_of\\(Order const\\*\\) at "
                                  "orders.cpp:28\n"));
  EXPECT_THAT(told,
              ContainsRegex("opened: orders.cpp:28 number_of[^\n]*, 0 branches before the end "
                            "\\[[0-9]*28  return order-&gt;number;\\]\ncrash marked: true\n"));
  EXPECT_THAT(told, ContainsRegex("view: 5[0-9] calls; end true; main on true; first row main\n"));
  EXPECT_THAT(told, HasSubstr("threads: 1; list false; open lanes 1\n"));
}

void expect_steps(const std::string& told) {
  EXPECT_THAT(told, ContainsRegex("step \\[: orders.cpp:27 number_of[^\n]*; button true\n"
                                  "step \\]: orders.cpp:28 number_of[^\n]*; button true\n"
                                  "step \\{: orders.cpp:27 number_of[^\n]*; button true\n"
                                  "step \\}: orders.cpp:28 number_of[^\n]*; button true\n"
                                  "step &lt;: orders.cpp:35 sum[^\n]*; button true\n"
                                  "step &gt;: orders.cpp:27 number_of[^\n]*; button true\n"));
  // Steps neither into find() nor into the C++ library's headers, which have source too.
  EXPECT_THAT(told, ContainsRegex("over \\{: orders.cpp:27 number_of[^\n]*\n"
                                  "over \\{: orders.cpp:35 sum[^\n]*\n"
                                  "over \\{: orders.cpp:34 sum[^\n]*\n"
                                  "over \\}: orders.cpp:35 sum[^\n]*\n"
                                  "over \\}: The call did not return: the trace ends in it "
                                  "\\[[0-9]*28[^\n]*\n"
                                  "over \\}: The trace ends here [^\n]*\n"));
  EXPECT_THAT(told, HasSubstr("after the end: The trace ends here ["));
}

void expect_parts(const std::string& told) {
  EXPECT_THAT(told, HasSubstr("copied: true\nwrong link: The link leads to no place in this page: "
                              "#thread=1&amp;before-end=0\nlink: true; goes back true\n"));
  EXPECT_THAT(told, HasSubstr("wheel: zooms true; stays true\nkey: zooms true; stays true\n"));
  EXPECT_THAT(told,
              ContainsRegex("tooltip: true; sum\\(Shelf&lt;\xE2\x80\xA6&gt; const&amp;, int\\) "
                            "\\| called at orders.cpp:62, had not returned; [^\n]*basic_string"));
  EXPECT_THAT(told, HasSubstr("tooltip hidden: true\nmap: centers true\nmap colors: true\n"));
  EXPECT_THAT(told, HasSubstr("start-up: longer true; pressed true; first row 0\n"));
  EXPECT_THAT(told, ContainsRegex("callers: sum\\([^\n]* orders.cpp:35 &lt; main orders.cpp:62"));
  EXPECT_THAT(told, HasSubstr("split: wider true; dragged true; true\n"));
  EXPECT_THAT(told, ContainsRegex("instructions: true; orders.cpp:28 [^\n]*0x[0-9a-f]+mov"));
}

TEST_F(ReportPage, OpensAtTheCrashAndIsWalkedByKeysAndMouse) {
  const std::string told = walk("orders", {"0"});
  expect_opening(told);
  expect_steps(told);
  expect_parts(told);
}

TEST_F(ReportPage, ListsThreads) {
  const std::string told = walk("orders", {"63"});
  EXPECT_THAT(told, HasSubstr("threads: 64; list true; open lanes 1\n"));
  EXPECT_THAT(told,
              ContainsRegex("selected: orders [0-9]+ ?died in number_of[^\n]*orders.cpp:28\n"
                            "focus: orders [0-9]+ wait_until_done\\(\\) at orders.cpp:49; -1\n"
                            "fold: true; false; true\nthread: true; true\nnext thread: 2\n"
                            "thread before: 0\nall folded: 1\nall open: true\n"));
}

TEST_F(ReportPage, OfAProgramWithoutLinesOpensAtTheCrash) {
  const std::string told = walk("without_lines");
  EXPECT_THAT(told,
              ContainsRegex("cause: SIGSEGV: [^\n]* in use \\(without_lines\\+0x[0-9a-f]+\\)\n"
                            "opened: use, 0 branches before the end \\[1?0x[0-9a-f]+mov[^\n]*\n"
                            "crash marked: true\n"));
  EXPECT_THAT(told, ContainsRegex("view: 3 calls; end true; main on true; first row main\n"));
  // Does not step to the C library's lines before main if these are known.
  EXPECT_THAT(told,
              ContainsRegex("step \\[: There is no earlier line with source; &lt; steps by call "
                            "\\[1?0x[0-9a-f]+mov"));
  EXPECT_THAT(told, ContainsRegex("step &lt;: order, 1 branch [^\n]*call[^\n]*; button true\n"
                                  "step &gt;: use, 0 branches [^\n]*; button true\n"));
  EXPECT_THAT(told, ContainsRegex("after the end: [^\n]*\\[1?0x[0-9a-f]+mov"));
}

TEST_F(ReportPage, OfASanitizersReportOpensAtItsCause) {
  if (!std::filesystem::exists(BT_INFERIOR_DIR "/sanitized_address")) {
    GTEST_SKIP() << "the compiler has no such sanitizer";
  }
  const std::string told = walk("sanitized_address", {"use-after-free", "0"});
  EXPECT_THAT(told, ContainsRegex("cause: ended after a sanitizer report[^\n]* in main at "
                                  "sanitized.cpp:53\nopened: sanitized.cpp:53 main, [^\n]*"
                                  "sink = kept.number.;[^\n]*\ncrash marked: true\n"));
}

TEST_F(ReportPage, OfADeepRecursionFoldsCallers) {
  const std::string told = walk("crashes", {"overflow"});
  EXPECT_THAT(told, ContainsRegex("callers: deeper \xC3\x97 [0-9,]+ crashes.c:[0-9]+ &lt; main "
                                  "crashes.c:[0-9]+"));
}

}  // namespace
}  // namespace backtrail::tracee
