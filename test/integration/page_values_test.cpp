// SPDX-License-Identifier: Apache-2.0
// The variables that the page of `backtrail report --html --values` shows at each line.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <boost/json.hpp>

#include "report_fixture.hpp"

namespace backtrail::tracee {
namespace {

namespace json = boost::json;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;

/// Values of variables by name.
using Line = std::map<std::string, std::string>;

class PageValues : public test::ReportFixture {
 protected:
  std::string page(const std::vector<std::string>& options = {"--html", "--values"}) {
    return report(options);
  }
  /// Returns the known variables of a function, or of its clones, at each place of the page, oldest
  /// first.
  static std::vector<Line> lines_of(const std::string& page, const std::string& function) {
    const std::string begin = R"(<script type="application/json" id="meta">)";
    const std::size_t at = page.find(begin) + begin.size();
    const json::value meta = json::parse(page.substr(at, page.find("</script>", at) - at));
    std::vector<Line> out;
    if (!meta.as_object().contains("values")) return out;
    const json::object& values = meta.at("values").as_object();
    for (const json::value& place : values.at("places").as_array()) {
      const json::array& numbers = place.as_array();
      Line line;
      bool is_wanted = false;
      for (std::size_t i = 2; i + 1 < numbers.size(); i += 2) {
        const json::array& variable =
            values.at("variables").at(json::value_to<std::size_t>(numbers[i])).as_array();
        const json::value& name = meta.at("names").at(json::value_to<std::size_t>(variable[0]));
        if (!name.as_string().starts_with(function)) continue;
        is_wanted = true;
        const auto text = json::value_to<std::size_t>(numbers[i + 1]);
        if (text == 0) continue;
        line[variable[1].as_string().c_str()] = values.at("texts").at(text).as_string().c_str();
      }
      if (is_wanted) out.push_back(line);
    }
    return {out.rbegin(), out.rend()};
  }
};

/// Returns the pairs of i and sum in the order of the lines, each once.
std::vector<std::string> rounds(const std::vector<Line>& lines) {
  const std::set<std::string> counts{"0", "1", "2", "3"};
  std::vector<std::string> out;
  for (const Line& line : lines) {
    const auto i = line.find("i");
    const auto sum = line.find("sum");
    if (i == line.end() || sum == line.end() || !counts.contains(i->second)) continue;
    const std::string round = i->second + " " + sum->second;
    if (out.empty() || out.back() != round) out.push_back(round);
  }
  return out;
}

TEST_F(PageValues, OfALoopAreThoseOfEachRound) {
  record("counted_O0");
  const std::vector<Line> lines = lines_of(page(), "sum_of");
  EXPECT_THAT(rounds(lines),
              ElementsAre("0 0", "0 3", "1 3", "1 8", "2 8", "2 15", "3 15", "3 26"));
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back().at("sum"), "26");
  EXPECT_EQ(lines.back().at("count"), "4");
}

TEST_F(PageValues, OfOptimisedCodeAreTrue) {
  record("counted_O2");
  const std::vector<std::string> sums{"0", "3", "8", "15", "26"};
  std::size_t known = 0;
  auto at = sums.begin();
  for (const Line& line : lines_of(page(), "sum_of")) {
    const auto sum = line.find("sum");
    if (sum == line.end()) continue;
    at = std::find(at, sums.end(), sum->second);
    ASSERT_NE(at, sums.end()) << sum->second;
    ++known;
  }
  EXPECT_GE(known, 2U);  // a lower bound that may only be raised
}

/// The dynamic linker's work between the two must not hide what was before.
TEST_F(PageValues, AreKnownBeforeFunctionsWereBound) {
  record("bound_late");
  const std::vector<Line> lines = lines_of(page(), "sum_to");
  const auto has = [&](const Line& wanted) {
    return std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
      return std::includes(line.begin(), line.end(), wanted.begin(), wanted.end());
    });
  };
  EXPECT_TRUE(has({{"n", "8"}, {"sum", "36"}}));
  EXPECT_TRUE(has({{"n", "8"}, {"sum", "6"}, {"i", "4"}}));
  EXPECT_TRUE(has({{"n", "4"}, {"sum", "6"}, {"i", "4"}}));
}

TEST_F(PageValues, AreThereIfAskedFor) {
  record("counted_O0");
  EXPECT_THAT(lines_of(page({"--html"}), "sum_of"), ElementsAre());
}

TEST_F(PageValues, AreShownStepByStep) {
  if (!has("node")) GTEST_SKIP() << "no node";
  record("counted_O0");
  run({BT_SERVER, "report", "x.core", "--html", "--values", "-o", "x.html"});
  const std::string text = run({"node", BT_PAGE_CHECK, "x.html"}, -1);
  EXPECT_EQ(status, 0) << text;
  EXPECT_THAT(text, ContainsRegex("values at counted.c:21: [^\n]*total=26 nowhere=0x0\\*\n"
                                  "values at counted.c:20: [^\n]*total=26\\* nowhere=\\?\n"));
  // Compilers choose whether the loop's line begins before or after its step.
  EXPECT_THAT(text, ContainsRegex("values at counted.c:10: i=3\\*? sum=15 [^\n]*count=4\n"
                                  "values at counted.c:9: i=(2 sum=15\\*|3\\* sum=15) "
                                  "[^\n]*count=4\nvalues at counted.c:10: i=2\\*? sum=8 "));
}

}  // namespace
}  // namespace backtrail::tracee
