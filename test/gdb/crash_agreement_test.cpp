// SPDX-License-Identifier: Apache-2.0
// The report, gdb on the core, gdb on the replayed trace and native stepping agree about one crash.
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "test/gdb/on_program.hpp"
#include "test/gdb/trace_oracle.hpp"
#include "test/support/effort.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// A call of a function of the program, and the function that called it.
struct OwnCall {
  std::string function;
  std::string within;
  bool operator==(const OwnCall&) const = default;
};

void PrintTo(const OwnCall& call, std::ostream* out) {
  *out << call.within << " > " << call.function;
}

/// Returns true for functions written in the program: no lambda, and no template named after a
/// lambda's type.
bool is_own(const std::string& function) {
  static const std::regex pattern{R"(ledger::[\w:~]+(\([^{}$]*\)( ?const)?)?)"};
  return std::regex_match(function, pattern);
}

/// gdb and backtrail differ in blanks.
std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

std::string without_parameters(const std::string& name) {
  return name.substr(0, name.find('('));
}

/// Returns the calls in order. At a function's entry, the frames above its stack pointer are on the
/// stack.
std::vector<OwnCall> own_calls(const Steps& steps) {
  std::vector<OwnCall> out;
  std::vector<Entry> stack;
  for (const Entry& entry : steps.entries) {
    while (!stack.empty() && stack.back().stack_pointer <= entry.stack_pointer) stack.pop_back();
    const auto within = std::find_if(stack.rbegin(), stack.rend(),
                                     [](const Entry& outer) { return is_own(outer.function); });
    if (is_own(entry.function)) {
      out.push_back({entry.function, within == stack.rend() ? "" : within->function});
    }
    stack.push_back(entry);
  }
  return out;
}

/// Expands the folded rows of a report.
class Unfolder {
 public:
  explicit Unfolder(const boost::json::array& rows) : rows_{rows} {}
  std::vector<OwnCall> calls() {
    unfold(0, rows_.size(), "");
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t number(std::size_t row, const char* name,
                                    std::int64_t otherwise) const {
    const auto* value = rows_[row].as_object().if_contains(name);
    return value == nullptr ? otherwise : value->to_number<std::int64_t>();
  }
  void unfold(std::size_t begin, std::size_t end, const std::string& within) {
    while (begin < end) {
      std::size_t behind = begin + 1;
      while (behind < end && number(behind, "depth", 0) > number(begin, "depth", 0)) ++behind;
      for (std::int64_t i = 0; i < number(begin, "times", 1); ++i)
        unfold_row(begin, behind, within);
      begin = behind;
    }
  }
  void unfold_row(std::size_t row, std::size_t behind, std::string within) {
    if (rows_[row].at("kind").as_string() == "call") {
      const std::string name =
          without_blanks(std::string{rows_[row].at("function").as_string().c_str()});
      for (std::int64_t i = 0; is_own(name) && i < number(row, "nested", 1); ++i) {
        out_.push_back({name, within});
        within = name;
      }
    }
    unfold(row + 1, behind, within);
  }

  const boost::json::array& rows_;
  std::vector<OwnCall> out_;
};

/// Returns the functions of gdb's `backtrace`, or of the calls in a report that had not returned.
std::vector<std::string> own_frames(const std::string& backtrace) {
  std::vector<std::string> out;
  const std::regex frame{R"(#\d+ +(?:0x[0-9a-f]+ in )?(ledger::[^ (]+))"};
  for (std::sregex_iterator at{backtrace.begin(), backtrace.end(), frame}, end; at != end; ++at) {
    out.push_back((*at)[1]);
  }
  return out;
}

std::vector<std::string> own_frames(const boost::json::array& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) {
    const auto* end = row.as_object().if_contains("end");
    if (end == nullptr || end->as_string() != "open") continue;
    const std::string name = row.at("function").as_string().c_str();
    if (is_own(name)) out.insert(out.begin(), without_parameters(name));
  }
  return out;
}

template <typename T>
std::vector<T> last_of(const std::vector<T>& all, std::size_t count) {
  return {all.end() - static_cast<std::ptrdiff_t>(std::min(all.size(), count)), all.end()};
}

/// Compares the end of gdb's function-call-history with the stretches of native stepping. Returns
/// the first difference; empty if there is none.
std::string first_difference(const Steps& native, const Steps& replayed) {
  const std::size_t before = replayed.instructions.size() - native.instructions.size();
  auto shown = replayed.stretches.begin();
  while (shown != replayed.stretches.end() && shown->last <= before) ++shown;
  for (const Stretch& stretch : native.stretches) {
    if (shown == replayed.stretches.end()) return "the history ends before " + stretch.function;
    const Stretch moved{stretch.function, stretch.first + before, stretch.last + before};
    // The first stretch of the history may have begun before it.
    const bool same = shown->function == moved.function && shown->last == moved.last &&
                      (shown->first == moved.first || &stretch == native.stretches.data());
    if (!same) {
      return fmt::format("{} {},{} in the history, natively {} {},{}", shown->function,
                         shown->first, shown->last, moved.function, moved.first, moved.last);
    }
    ++shown;
  }
  return {};
}

class CrashAgreement : public ::testing::Test {
 protected:
  std::string run(const std::vector<std::string>& words) {
    SpawnOptions options{
        .arguments = words, .environment = test_environment(), .working_directory = folder.path()};
    Subprocess process{options};
    EXPECT_TRUE(process.wait(deadline_in(std::chrono::seconds{120}))) << words[0];
    return process.output().text();
  }
  std::unique_ptr<GdbSession> gdb(const std::string& command) {
    GdbOptions options;
    options.symbols = program[0];
    options.connect = false;
    auto session = std::make_unique<GdbSession>(std::move(options));
    session->run(command);
    return session;
  }
  std::unique_ptr<GdbSession> replay(const std::string& format) {
    auto session = gdb(fmt::format("target remote | {} replay - {}", backtrail, core));
    session->run_all({"set record btrace bts buffer-size unlimited",
                      "set record btrace pt buffer-size unlimited", "record btrace " + format});
    return session;
  }

  TemporaryFolder folder;
  std::string backtrail = server_command(Peer::kUnderTest)[0];
  std::string core = folder / "crash.core";
  std::vector<std::string> program{inferior("ledger"), "call"};
};

TEST_F(CrashAgreement, ReportCoreReplayAndNativeSteps) {
  if (kSanitized) GTEST_SKIP() << "gdb's own steps take most of it: for the other builds";
  const Steps native = native_steps(program, "*ledger::run", "SIGSEGV");
  const std::vector<OwnCall> expected = own_calls(native);
  ASSERT_THAT(expected, SizeIs(::testing::Gt(20U)));
  std::vector<std::string> frames;
  for (const std::string& name : native.backtrace) {
    if (is_own(name)) frames.push_back(without_parameters(name));
  }

  run({backtrail, "record", "--source", "cache", "-o", core, "--", program[0], program[1]});
  const auto report =
      boost::json::parse(run({backtrail, "report", core, "--json", "--calls", "100000"}));
  const auto& died = report.at("threads").as_array().at(0);
  EXPECT_TRUE(died.at("died").as_bool());
  const auto& rows = died.at("calls").as_array();
  EXPECT_THAT(Unfolder{rows}.calls(), ElementsAreArray(expected));
  EXPECT_THAT(own_frames(rows), ElementsAreArray(frames));

  auto dead = gdb("core-file " + core);
  EXPECT_THAT(own_frames(dead->run("backtrace")), ElementsAreArray(frames));
  EXPECT_EQ(dead->value("(unsigned long)$pc"),
            std::to_string(
                std::stoull(std::string{died.at("at").at("address").as_string()}, nullptr, 16)));

  for (const char* format : {"bts", "pt"}) {
    auto session = replay(format);
    EXPECT_THAT(own_frames(session->run("backtrace")), ElementsAreArray(frames));
    EXPECT_EQ(recorded_counts(*session).gaps, 0U);
    const Steps replayed = recorded_steps(*session);
    EXPECT_EQ(
        difference(native.instructions, last_of(replayed.instructions, native.instructions.size())),
        "")
        << format;
    EXPECT_EQ(first_difference(native, replayed), "") << format;
  }
}

TEST_F(CrashAgreement, StepsBackToTheLineThatSmashed) {
  for (const char* pointer : {"data", "call"}) {
    program[1] = pointer;
    run({backtrail, "record", "--source", "cache", "-o", core, "--", program[0], program[1]});
    auto session = replay("pt");
    session->run("reverse-stepi");  // There are no lines to step by outside of functions.
    std::string text;
    for (int i = 0; i < 300 && text.find("// smashes") == std::string::npos; ++i) {
      text = session->run("reverse-step");
    }
    EXPECT_THAT(text, HasSubstr("// smashes")) << pointer;
  }
}

}  // namespace
}  // namespace backtrail::test
