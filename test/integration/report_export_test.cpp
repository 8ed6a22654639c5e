// SPDX-License-Identifier: Apache-2.0
// Files that `backtrail report` writes for viewers, read back by parsers, by node and by a browser.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

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
  /// Returns the page's text after a search for `text` and a walk over its results.
  std::string walk_search(const std::string& text) {
    const std::string page = report({"--html"}) + "<script>const searched = '" + text +
                             "';</script>" + run({"cat", BT_SEARCH_WALK});
    std::ofstream{folder / "x.html"} << page;
    const std::string dom = dom_of("x.html");
    return dom.substr(std::min(dom.find("<pre id=\"told\">"), dom.size()));
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

TEST_F(ReportExport, FoldedStacksOfTasksAreApart) {
  record("tasks");
  std::istringstream lines{report({"--folded"})};
  std::set<std::string> working;
  for (std::string line; std::getline(lines, line);) {
    const std::string stack = line.substr(0, line.rfind(' ')) + ";";
    const auto calls = [&](const std::string& name) {
      return stack.find(";" + name + ";") != std::string::npos;
    };
    EXPECT_LE(calls("main") + calls("worker") + calls("other_worker") + calls("schedule"), 1)
        << line;
    if (calls("work")) working.insert(stack.substr(stack.find(';')));
  }
  EXPECT_THAT(working, testing::UnorderedElementsAre(";worker;work;", ";other_worker;work;"));
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

/// Replays trace events in the ways of two viewers. speedscope sorts begins and ends separately and
/// merges them by time and name; Perfetto takes them in file order.
class TraceEventsOfThreads {
 public:
  explicit TraceEventsOfThreads(const boost::json::value& file) {
    for (const auto& event : file.at("traceEvents").as_array()) follow(event);
    for (auto& [tid, thread] : threads) EXPECT_TRUE(thread.open.empty()) << tid;
  }

  struct Thread {
    std::vector<std::string> open;
    double time = 0;  ///< Time of the newest begin, end or death.
    std::string kind;
    std::size_t calls = 0;
    std::size_t deepest_alike = 0;  ///< Most consecutive frames of one name on the stack.
    std::size_t switched_kind = 0;  ///< Begins and ends at nearly the same time.
  };
  std::map<std::int64_t, Thread> threads;
  bool died = false;

 private:
  void follow(const boost::json::value& event) {
    const std::string kind{event.at("ph").as_string()};
    ASSERT_TRUE(event.as_object().contains("ts"));  // speedscope 1.18 needs it on every event
    const bool crash = kind == "i" && event.at("name").as_string() == "SIGSEGV";
    // Metadata and times follow the calls.
    if (kind == "M" || kind == "C" || (kind == "i" && !crash)) return;
    died = died || crash;
    Thread& thread = threads[event.at("tid").as_int64()];
    const auto time = event.at("ts").to_number<double>();
    EXPECT_GE(time, thread.time);
    if (kind == "B" || kind == "E") {
      // A viewer's sort must not change the order of a begin and an end.
      if (kind != thread.kind && !thread.kind.empty()) {
        EXPECT_GT(time, thread.time);
        if (time < thread.time + 0.5) ++thread.switched_kind;
      }
      follow_call(kind, std::string{event.at("name").as_string()}, thread);
    }
    thread.time = time;
    thread.kind = kind;
  }
  static void follow_call(const std::string& kind, const std::string& name, Thread& thread) {
    if (kind == "B") {
      thread.open.push_back(name);
      ++thread.calls;
      const auto alike = std::find_if(thread.open.rbegin(), thread.open.rend(),
                                      [&](const std::string& other) { return other != name; });
      thread.deepest_alike =
          std::max(thread.deepest_alike, static_cast<std::size_t>(alike - thread.open.rbegin()));
      return;
    }
    ASSERT_FALSE(thread.open.empty());
    EXPECT_EQ(thread.open.back(), name);
    thread.open.pop_back();
  }
};

TEST_F(ReportExport, TraceEventsNestByNameAndEndTogether) {
  record("smash");
  const TraceEventsOfThreads events{boost::json::parse(report({"--perfetto"}))};
  EXPECT_TRUE(events.died);
  ASSERT_EQ(events.threads.size(), 2U);
  const auto& [first, second] =
      std::tie(events.threads.begin()->second, events.threads.rbegin()->second);
  EXPECT_EQ(std::floor(first.time), std::floor(second.time));
  EXPECT_GT(first.calls + second.calls, 1000U);
  // A tail call ends one function and begins the other at once.
  EXPECT_GT(first.switched_kind + second.switched_kind, 0U);
}

TEST_F(ReportExport, TraceEventsOfARecursionNestByName) {
  record("crashes", {"overflow"});
  const TraceEventsOfThreads events{boost::json::parse(report({"--perfetto"}))};
  ASSERT_EQ(events.threads.size(), 1U);
  EXPECT_GT(events.threads.begin()->second.deepest_alike, 100U);
}

TEST_F(ReportExport, TraceEventsOfAPartNestByName) {
  // Functions that the part only returns from were called before the part begins.
  record("ledger");
  for (const std::string branches : {"1", "4097", "9000"}) {
    const TraceEventsOfThreads events{
        boost::json::parse(report({"--perfetto", "--branches", branches}))};
    EXPECT_FALSE(events.threads.empty()) << branches;
  }
}

TEST_F(ReportExport, APageWalksTheTraceInNode) {
  if (!has("node")) GTEST_SKIP() << "no node";
  record("smash");
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  // Steps from the smashed pointer back to the loop that smashed it.
  EXPECT_THAT(text, AllOf(ContainsRegex("stack [^\n]*< run_order\\(Order&\\) < work"),
                          HasSubstr("steps smash.cpp:39 smash.cpp:38 smash.cpp:47 smash.cpp:36 "
                                    "smash.cpp:33 "),
                          ContainsRegex("instructions [0-9]+ [^\n]*callq? \\*%rdx"),
                          Not(HasSubstr("sources 0"))));
}

TEST_F(ReportExport, APageHasTheCallersThatOnlyTheStackTells) {
  if (!has("node")) GTEST_SKIP() << "no node";
  record("stacks_fast", {"chain"});
  run({BT_SERVER, "report", "x.core", "--html", "--branches", "10000", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  EXPECT_THAT(text, ContainsRegex("stack die < inner < outer < main < "));
}

TEST_F(ReportExport, ASearchFindsWhatWasInlined) {
  if (!has("node")) GTEST_SKIP() << "no node";
  record("inlined");
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html", "inner", "outer", "outside"}, -1);
  EXPECT_EQ(status, 0) << text;
  // Compilers choose the lines at which an inlined run begins and ends.
  const std::string inner = " inlined.c:12 to inlined.c:1[34] at ";
  const std::string outer = "found outer in work inlined.c:1[27] to inlined.c:(13|14|20) at ";
  const std::string twice = "found inner in work" + inner + "inlined.c:19\nfound inner in work" +
                            inner + "inlined.c:17\n";
  EXPECT_THAT(text, ContainsRegex("search inner: inner \\(inlined\\)\nfound inner in main" + inner +
                                  "inlined.c:31\n" + twice + twice + twice + "found 7\n"));
  // A call within an inlined run does not end the run.
  EXPECT_THAT(text, ContainsRegex("search outer: outer \\(inlined\\)\n" + outer + "inlined.c:25\n" +
                                  outer + "inlined.c:23\n" + outer + "inlined.c:23\nfound 3\n"));
  EXPECT_THAT(text, HasSubstr("search outside: outside\nfound call of outside\n"
                              "found call of outside\nfound call of outside\nfound 3\n"));
}

TEST_F(ReportExport, ASearchWalksCallsAndInlinedRunsInABrowser) {
  if (const std::string why = why_no_browser(); !why.empty()) GTEST_SKIP() << why;
  record("inlined");
  const std::string told = walk_search("inner");
  EXPECT_THAT(told, HasSubstr("hits [inner (inlined)]\ntyped [1 inlined function] in [main]"));
  const auto at = [](const std::string& into, const std::string& call) {
    return " \\[inner, inlined into " + into + "\\] in \\[" + call +
           "\\] on \\[[0-9]*1[34][ }][^\n]*\n";
  };
  const std::string last = at("main at inlined.c:31", "main");
  EXPECT_THAT(
      told, ContainsRegex("back" + last + "back" + at("outer at inlined.c:19", "work") + "back" +
                          at("outer at inlined.c:17", "work") + "forth" +
                          at("outer at inlined.c:19", "work") +
                          "step \\[inlined.c:1[23] inner, inlined into work, [^\n]*\nforth" + last +
                          "hit" + last + "none \\[No call found\\] in \\[main\\]"));
  // Calls and inlined runs appear in the order of the trace.
  EXPECT_THAT(walk_search("out"),
              ContainsRegex("back \\[outer, inlined into work at inlined.c:25\\][^\n]*\n"
                            "back \\[outside, called at inlined.c:18[^\n]*\n"));
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
  if (const std::string why = why_no_browser(); !why.empty()) GTEST_SKIP() << why;
  record("hostile");
  run({BT_SERVER, "report", "x.core", "--html", "-o", "x.html"});
  EXPECT_THAT(dom_of("x.html"),
              AllOf(HasSubstr("data-state=\"ready\""), HasSubstr("&lt;/script&gt;&lt;img"),
                    Not(HasSubstr("data-state=\"taken\""))));
  const std::string told = walk_search("<img src=y");
  EXPECT_THAT(
      told, AllOf(ContainsRegex("hits \\[\"?&lt;/script&gt;&lt;img src=y"),
                  ContainsRegex("back \\[\"?&lt;/script&gt;&lt;img src=y[^\n]*, inlined into main"),
                  Not(HasSubstr("<img"))));
}

TEST_F(ReportExport, FramesOfAPageDoNotGrowWithTheTrace) {
  if (const std::string why = why_no_browser(); !why.empty()) GTEST_SKIP() << why;
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
