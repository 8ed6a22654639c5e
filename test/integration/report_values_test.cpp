// SPDX-License-Identifier: Apache-2.0
// The values of variables in reports: what the program itself printed, or nothing.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include <gmock/gmock.h>
#include <boost/json.hpp>

#include "report_fixture.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

namespace json = boost::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Values by frame and variable: "walk/0 depth". "?" if the report does not know it.
using Values = std::map<std::string, std::string>;

class ReportValues : public test::ReportFixture {
 protected:
  /// Records the program and returns what it printed.
  Values recorded(const std::string& program, const std::vector<std::string>& arguments = {}) {
    std::vector<std::string> words{
        BT_SERVER, "record", "-o", "x.core", "--", std::string{BT_INFERIOR_DIR} + "/" + program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return printed(run(words, -1));
  }
  static Values printed(const std::string& text) {
    Values out;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) {
      const std::size_t value = line.find(' ', line.find(' ') + 1);
      if (line.find('/') < line.find(' ') && value != std::string::npos) {
        out[line.substr(0, value)] = line.substr(value + 1);
      }
    }
    return out;
  }
  /// Returns the last name of a function, without parameters.
  static std::string last_name(std::string name) {
    if (name.find("operator()") != std::string::npos) return "operator()";
    name = name.substr(0, name.find('('));
    name = name.substr(0, name.find('<'));
    name = name.substr(0, name.find('.'));  // a clone's suffix
    const std::size_t before = name.find_last_of(": ");
    return before == std::string::npos ? name : name.substr(before + 1);
  }
  /// Returns the values in the report's stack.
  Values shown(const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{"--values", "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const json::value all = json::parse(report(words));
    const json::object& thread = all.at("threads").at(0).as_object();
    Values out;
    std::map<std::string, int> counts;
    if (!thread.contains("stack_frames")) return out;
    for (const json::value& frame : thread.at("stack_frames").as_array()) {
      const json::object& one = frame.as_object();
      if (!one.contains("function")) continue;
      const std::string name = last_name(one.at("function").as_string().c_str());
      const std::string key = name + "/" + std::to_string(counts[name]++) + " ";
      for (const char* list : {"arguments", "locals"}) {
        if (!one.contains(list)) continue;
        for (const json::value& variable : one.at(list).as_array()) {
          const json::value& value = variable.at("value");
          out[key + variable.at("name").as_string().c_str()] =
              value.is_null() ? "?" : value.as_string().c_str();
        }
      }
    }
    return out;
  }
  /// Returns true if `shown` is the value, but for members that it leaves open.
  static bool agrees(std::string_view value, std::string_view shown) {
    constexpr std::string_view kOpen = "=?";
    for (std::size_t at = 0; (at = shown.find(kOpen)) != std::string_view::npos;) {
      ++at;
      if (value.substr(0, at) != shown.substr(0, at)) return false;
      shown.remove_prefix(at + 1);
      value.remove_prefix(std::min(value.size(), value.find_first_of(",}", at)));
    }
    return value == shown;
  }
  /// Compares every value shown. Returns the number of those that are known.
  static std::size_t judge(const Values& truth, const Values& values) {
    EXPECT_FALSE(truth.empty()) << "the program printed no values";
    std::size_t known = 0;
    for (const auto& [name, value] : truth) {
      const auto found = values.find(name);
      if (found == values.end() || found->second == "?") continue;
      // The report may leave out what a reference refers to.
      const bool is_reference = value.starts_with(found->second + ": ");
      EXPECT_TRUE(is_reference || agrees(value, found->second)) << name << ": " << found->second;
      ++known;
    }
    return known;
  }
  static std::string without(const Values& values, const Values& truth) {
    std::string out;
    for (const auto& [name, value] : truth) {
      const auto found = values.find(name);
      if (found == values.end() || found->second == "?") out += name + "\n";
    }
    return out;
  }
};

TEST_F(ReportValues, WithoutOptimisationAllVariablesOfTheStackAreKnown) {
  const Values truth = recorded("valued");
  const Values values = shown();
  EXPECT_GE(truth.size(), 25U);
  EXPECT_EQ(judge(truth, values), truth.size()) << without(values, truth);
  EXPECT_THAT(report({"--values"}), AllOf(HasSubstr("innermost(count=2, sum=42, node=0x"),
                                          HasSubstr("        text = \"a \\\"word\\\"\\n\"\n"),
                                          Not(HasSubstr("no values"))));
}

TEST_F(ReportValues, ObjectsOfCppAreKnownWithoutOptimisation) {
  const Values truth = recorded("valued_objects");
  const Values values = shown();
  EXPECT_EQ(judge(truth, values), truth.size()) << without(values, truth);
  EXPECT_THAT(report({"--values"}), AllOf(HasSubstr("shapes::Shape::area(this=0x"),
                                          HasSubstr("why=@0x"), Not(HasSubstr("\x1b"))));
}

TEST_F(ReportValues, OptimisedCodeShowsOnlyTruth) {
  for (const char* program : {"valued_O1", "valued_O2", "valued_objects_O2"}) {
    const Values truth = recorded(program);
    EXPECT_GE(judge(truth, shown()), 3U) << program << "\n" << report({"--values"});
  }
}

TEST_F(ReportValues, OfAHandlerAndOfTheCodeThatItInterrupted) {
  for (const char* program : {"valued", "valued_O2"}) {
    const Values truth = recorded(program, {"handler"});
    const Values values = shown();
    const std::size_t known = judge(truth, values);
    if (program == std::string{"valued"}) {
      EXPECT_EQ(known, truth.size()) << without(values, truth);
    }
    EXPECT_TRUE(values.contains("interrupted/0 left")) << report({"--values"});
  }
}

TEST_F(ReportValues, OfTheCallerOfCodeThatDoesNotExist) {
  const Values truth = recorded("valued", {"wild"});
  const Values values = shown();
  EXPECT_EQ(judge(truth, values), truth.size()) << without(values, truth);
}

TEST_F(ReportValues, ASmashedStackShowsNothingOfCallersThatItContradicts) {
  const Values truth = recorded("valued", {"smashed"});
  const Values values = shown();
  judge(truth, values);
  EXPECT_THAT(report({"--values"}), HasSubstr("cannot be unwound beyond 0x1234567"));
  EXPECT_FALSE(values.contains("main/0 argc")) << report({"--values"});
}

TEST_F(ReportValues, OfAStackOverflow) {
  recorded("valued", {"deep"});
  const Values values = shown();
  int level = -1;
  for (int i = 30; i >= 0; --i) {
    const auto frame = "deep/" + std::to_string(i);
    const auto found = values.find(frame + " level");
    if (found == values.end() || found->second == "?") continue;
    if (level >= 0) {
      EXPECT_EQ(found->second, std::to_string(level + 1)) << frame;
    }
    level = std::stoi(found->second);
    EXPECT_EQ(values.at(frame + " salt"), "12345");
  }
  EXPECT_GE(level, 100);
  EXPECT_THAT(report({"--values"}), HasSubstr("more frames"));
}

TEST_F(ReportValues, ACoreWithoutATraceHasTheValuesOfItsStack) {
  const Values truth = recorded("valued", {"stack"});
  std::vector<std::string> words{
      BT_SERVER, "record", "--source", "none",
      "-o",      "x.core", "--",       std::string{BT_INFERIOR_DIR} + "/valued"};
  const Values untraced = printed(run(words, -1));
  const Values values = shown();
  EXPECT_EQ(judge(untraced, values), untraced.size()) << without(values, untraced);
}

TEST_F(ReportValues, WithoutDebugInformationALineSaysWhy) {
  recorded("valued_stripped");
  const std::string text = report({"--values"});
  EXPECT_THAT(text, HasSubstr("no values: valued_stripped has no debug information"));
  EXPECT_TRUE(shown().empty());
}

TEST_F(ReportValues, WithoutTheProgramALineSaysWhy) {
  std::filesystem::copy_file(std::string{BT_INFERIOR_DIR} + "/valued", folder.path() + "/gone");
  run({BT_SERVER, "record", "-o", "x.core", "--", folder.path() + "/gone"}, -1);
  std::filesystem::remove(folder.path() + "/gone");
  EXPECT_THAT(report({"--values"}), HasSubstr("no values: gone was not found"));
}

/// One value of a call: "add more 8"; of a result "add = 11".
using Lines = std::vector<std::string>;

class ReportCalls : public ReportValues {
 protected:
  /// Returns what the program prints natively, without the addresses of strings.
  Lines truth_of(const std::string& program) {
    const std::string text = run({std::string{BT_INFERIOR_DIR} + "/" + program, "say"}, -1);
    Lines out;
    std::istringstream lines{text};
    for (std::string line; std::getline(lines, line);) out.push_back(line);
    return out;
  }
  static std::string without_address(const std::string& value) {
    const bool is_string = value.starts_with("0x") && value.find(" \"") != std::string::npos;
    return is_string ? "* " + value.substr(value.find(' ') + 1) : value;
  }
  /// Returns the known values of the report's last calls, calls in order, each before its result.
  Lines calls() {
    const json::value all = json::parse(report({"--values", "--json"}));
    const json::object& thread = all.at("threads").at(0).as_object();
    Lines out;
    if (!thread.contains("last_calls")) return out;
    for (const json::value& call : thread.at("last_calls").as_array()) {
      const json::object& one = call.as_object();
      const std::string name = one.at("function").as_string().c_str();
      if (one.contains("arguments")) {
        for (const json::value& argument : one.at("arguments").as_array()) {
          const json::value& value = argument.at("value");
          if (value.is_null()) continue;
          out.push_back(name + " " + argument.at("name").as_string().c_str() + " " +
                        without_address(value.as_string().c_str()));
        }
      }
      if (!one.contains("result") || one.at("result").at("value").is_null()) continue;
      out.push_back(name + " = " +
                    without_address(one.at("result").at("value").as_string().c_str()));
    }
    return out;
  }
  /// Compares the values of each function's arguments and results in order, from the last call
  /// back. Returns the number of those that are known.
  static std::size_t judge_calls(const Lines& truth, const Lines& values) {
    std::map<std::string, Lines> wanted;
    std::set<std::string> done;
    const auto key = [](const std::string& line) {
      return line.substr(0, line.find(' ', line.find(' ') + 1));
    };
    for (const std::string& line : truth) wanted[key(line)].push_back(line);
    std::map<std::string, Lines> found;
    for (const std::string& line : values) found[key(line)].push_back(line);
    std::size_t count = 0;
    for (auto& [name, lines] : found) {
      if (!wanted.contains(name)) continue;
      Lines right = wanted.at(name);
      // Results of nested calls end in the other order.
      if (name.ends_with("=")) {
        std::sort(right.begin(), right.end());
        std::sort(lines.begin(), lines.end());
      }
      auto at = right.begin();
      for (const std::string& line : lines) {
        at = std::find(at, right.end(), line);
        EXPECT_NE(at, right.end()) << "wrong: " << line;
        if (at == right.end()) break;
        ++at;
        ++count;
      }
    }
    return count;
  }
};

TEST_F(ReportCalls, WithoutOptimisationShowsOnlyTruth) {
  const Lines truth = truth_of("called_O0");
  record("called_O0");
  EXPECT_GE(truth.size(), 25U);
  // A lower bound that may only be raised.
  EXPECT_GE(judge_calls(truth, calls()), 20U);
  EXPECT_THAT(report({"--values"}),
              AllOf(HasSubstr("ignore(one=1, two=2, three=3, four=4, five=5, six=6, seven=7, "
                              "eight=-8)  called.c:"),
                    HasSubstr(">   last(count=6, place=0x0)")));
}

TEST_F(ReportCalls, OptimisedCodeShowsOnlyTruth) {
  for (const char* program : {"called_O1", "called_O2"}) {
    const Lines truth = truth_of(program);
    record(program);
    EXPECT_GE(judge_calls(truth, calls()), 8U) << report({"--values"});
  }
}

TEST_F(ReportCalls, OfOtherSourcesAreTheSame) {
  record("called_static");
  const Lines values = calls();
  EXPECT_FALSE(values.empty());
  record("called_static", {}, "step");
  EXPECT_EQ(calls(), values);
}

TEST_F(ReportCalls, ACoreWithoutATraceHasNone) {
  record("called_O0", {}, "none");
  EXPECT_TRUE(calls().empty());
}

TEST_F(ReportValues, AreNotShownUnlessAskedFor) {
  recorded("valued");
  for (const char* shown : {"values at the end", "\"locals\""}) {
    EXPECT_THAT(report({"--values"}) + report({"--values", "--json"}), HasSubstr(shown));
    EXPECT_THAT(report() + report({"--json"}), Not(HasSubstr(shown)));
  }
}

TEST_F(ReportValues, DamagedDebugInformationDoesNoHarm) {
  const std::string copy = folder.path() + "/damaged";
  std::filesystem::copy_file(std::string{BT_INFERIOR_DIR} + "/valued", copy);
  run({BT_SERVER, "record", "-o", "x.core", "--", copy}, -1);
  // Damages bytes of the debug sections, which come after everything that is mapped.
  const auto size = std::filesystem::file_size(copy);
  for (unsigned seed = 1; seed <= (test::kSanitized ? 8U : 20U); ++seed) {
    run({"python3", "-c",
         "import random,sys\n"
         "r=random.Random(int(sys.argv[2]))\n"
         "d=bytearray(open(sys.argv[3],'rb').read())\n"
         "lo=len(d)//3\n"
         "for _ in range(r.choice([1,10,100,1000])): "
         "d[r.randrange(lo,len(d)-2500)]=r.randrange(256)\n"
         "open(sys.argv[1],'wb').write(d)\n",
         copy, std::to_string(seed), std::string{BT_INFERIOR_DIR} + "/valued"});
    ASSERT_EQ(std::filesystem::file_size(copy), size);
    report({"--values", "--json"});
    EXPECT_EQ(status, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace backtrail::tracee
