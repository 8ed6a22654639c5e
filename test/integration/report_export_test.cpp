// What `backtrail report` writes for viewers: read back by parsers, by node and by a browser.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <boost/json.hpp>

#include "report_fixture.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ReportExport : public test::ReportFixture {
 protected:
  /// What a browser makes of a page, when its scripts have come to an end.
  std::string dom_of(const std::string& name) {
    return run({"chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--user-data-dir=" + folder.path() + "/profile", "--window-size=1400,1000",
                "--virtual-time-budget=20000", "--dump-dom", "file://" + (folder / name)});
  }
};

TEST_F(ReportExport, FoldedStacksAddUp) {
  record("smash");
  std::istringstream lines{report({"--folded"})};
  std::size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.rfind(' ');
    ASSERT_NE(space, std::string::npos) << line;
    EXPECT_GT(std::stoll(line.substr(space + 1)), 0) << line;
    if (line.find(";work(char const*);set_customer(Order&, char const*);") != std::string::npos) {
      ++found;
    }
  }
  EXPECT_GT(found, 0U);
}

TEST_F(ReportExport, FoldedStacksOfADeepRecursionHaveALimit) {
  record("crashes", {"overflow"});
  const std::string text = report({"--folded"});
  std::istringstream lines{text};
  std::ptrdiff_t deepest = 0;
  for (std::string line; std::getline(lines, line);)
    deepest = std::max(deepest, std::count(line.begin(), line.end(), ';'));
  EXPECT_EQ(deepest, 1000);
  EXPECT_LT(text.size(), std::size_t{32} << 20);
}

TEST_F(ReportExport, SpeedscopeEventsNest) {
  record("smash");
  const auto file = boost::json::parse(report({"--speedscope"}));
  const auto& frames = file.at("shared").at("frames").as_array();
  for (const auto& profile : file.at("profiles").as_array()) {
    std::vector<std::int64_t> stack;
    std::int64_t time = 0;
    for (const auto& event : profile.at("events").as_array()) {
      const std::int64_t frame = event.at("frame").as_int64();
      EXPECT_LT(static_cast<std::size_t>(frame), frames.size());
      EXPECT_GE(event.at("at").as_int64(), time);
      time = event.at("at").as_int64();
      if (event.at("type").as_string() == "O") {
        stack.push_back(frame);
      } else {
        ASSERT_FALSE(stack.empty());
        EXPECT_EQ(stack.back(), frame);
        stack.pop_back();
      }
    }
    EXPECT_TRUE(stack.empty());
    EXPECT_LE(time, profile.at("endValue").as_int64());
  }
}

TEST_F(ReportExport, TraceEventsNestAndEndTogether) {
  record("smash");
  const auto file = boost::json::parse(report({"--perfetto"}));
  std::map<std::int64_t, std::vector<std::string>> stacks;
  std::map<std::int64_t, std::int64_t> last;
  bool died = false;
  for (const auto& event : file.at("traceEvents").as_array()) {
    const auto& kind = event.at("ph").as_string();
    const bool crash = kind == "i" && event.at("name").as_string() == "SIGSEGV";
    // What is known of times stands behind the calls.
    if (kind == "M" || kind == "C" || (kind == "i" && !crash)) continue;
    const std::int64_t tid = event.at("tid").as_int64();
    const std::int64_t time = event.at("ts").as_int64();
    EXPECT_GE(time, last[tid]);
    last[tid] = time;
    if (kind == "B") stacks[tid].emplace_back(event.at("name").as_string());
    if (kind == "E") {
      ASSERT_FALSE(stacks[tid].empty());
      stacks[tid].pop_back();
    }
    died = died || crash;
  }
  EXPECT_TRUE(died);
  EXPECT_EQ(last.size(), 2U);
  EXPECT_EQ(last.begin()->second, last.rbegin()->second);
}

TEST_F(ReportExport, APageWalksTheTraceInNode) {
  if (!has("node")) GTEST_SKIP() << "no node";
  record("smash");
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  // From the smashed pointer back over the loop that smashed it.
  EXPECT_THAT(text, AllOf(ContainsRegex("stack [^\n]*< run_order\\(Order&\\) < work"),
                          HasSubstr("steps smash.cpp:39 smash.cpp:38 smash.cpp:47 smash.cpp:36 "
                                    "smash.cpp:33 "),
                          ContainsRegex("instructions [0-9]+ [^\n]*callq? \\*%rdx"),
                          Not(HasSubstr("sources 0"))));
}

TEST_F(ReportExport, HostileNamesStayNames) {
  record("hostile");
  const std::string page = report({"--html"});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<img")), HasSubstr("\\u003cimg src=x")));
  EXPECT_THAT(report({"--folded"}), HasSubstr("</script><img src=x onerror"));
  boost::json::parse(report({"--speedscope"}));
  boost::json::parse(report({"--perfetto"}));
  if (!has("node")) GTEST_SKIP() << "no node";
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  // clang's names keep the quotes.
  EXPECT_THAT(text, ContainsRegex("stack \"?</script><img"));
}

TEST_F(ReportExport, APageOpensInABrowser) {
  if (!has("chromium")) GTEST_SKIP() << "no chromium";
  record("hostile");
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  EXPECT_THAT(dom_of("x.html"),
              AllOf(HasSubstr("data-state=\"ready\""), HasSubstr("&lt;/script&gt;&lt;img"),
                    Not(HasSubstr("data-state=\"taken\""))));
}

TEST_F(ReportExport, FramesOfAPageDoNotGrowWithTheTrace) {
  if (!has("chromium")) GTEST_SKIP() << "no chromium";
  run({BT_SERVER, "record", "--all", "-o", "x.core", "--",
       std::string{BT_INFERIOR_DIR} + "/crashes", "calls", "17"},
      -1);
  const std::string page = report({"--html"}) + run({"cat", BT_FRAME_COUNTS});
  std::ofstream{folder / "x.html"} << page;
  const std::string dom = dom_of("x.html");
  const auto count = [&](const std::string& name) {
    const std::size_t at = dom.find(name + ":", dom.find("data-counts=\"{"));
    return at == std::string::npos ? -1.0 : std::stod(dom.substr(at + name.size() + 1));
  };
  EXPECT_GT(count("calls"), 260'000);
  EXPECT_GT(count("frames"), 60);
  EXPECT_GT(count("colors"), 10);
  EXPECT_GT(count("drawn"), 20);
  EXPECT_LT(count("drawn"), count("mostDrawn"));
  EXPECT_GT(count("looked"), count("width"));
  EXPECT_LT(count("looked"), count("mostLooked"));
  EXPECT_LT(count("looked"), count("calls") / 2);
}

}  // namespace
}  // namespace backtrail::tracee
