// SPDX-License-Identifier: Apache-2.0
#include "test/gdb/trace_oracle.hpp"

#include <algorithm>
#include <ostream>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace backtrail::test {
namespace {

std::uint64_t hex(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

/// Removes blanks, in which gdb's commands differ about names.
std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

Steps parse_native(const std::string& output) {
  Steps steps;
  std::istringstream lines{output};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    std::string kind;
    std::string name;
    words >> kind >> name;
    if (kind == "S") steps.stack_pointer = hex(name);
    if (kind == "I") steps.instructions.push_back(hex(name));
    if (kind == "F") {
      Stretch stretch{.function = name};
      words >> stretch.first >> stretch.last;
      steps.stretches.push_back(stretch);
    }
    if (kind == "B") steps.backtrace.push_back(name);
    if (kind == "C") {
      std::string stack_pointer;
      words >> stack_pointer;
      steps.entries.push_back({name, hex(stack_pointer)});
    }
  }
  return steps;
}

}  // namespace

void PrintTo(const Stretch& stretch, std::ostream* out) {
  *out << fmt::format("{} {},{}", stretch.function, stretch.first, stretch.last);
}

Steps native_steps(const std::vector<std::string>& program, const std::string& begin,
                   const std::string& end) {
  SpawnOptions options{
      .arguments = {"gdb",   "-nx",
                    "-q",    "-batch",
                    "-ex",   "set debug-file-directory /nonexistent",
                    "-ex",   "set debuginfod enabled off",
                    "-ex",   "set auto-load no",
                    "-ex",   "set breakpoint pending on",
                    "-ex",   "set cwd /",
                    "-x",    BT_TEST_SOURCE_DIR "/native_steps.py",
                    "-ex",   "unset environment LINES",
                    "-ex",   "unset environment COLUMNS",
                    "-ex",   fmt::format("native-steps {} {}", begin, end),
                    "--args"},
      .environment = test_environment(),
      .working_directory = "/",
  };
  options.arguments.insert(options.arguments.end(), program.begin(), program.end());
  Subprocess gdb{options};
  gdb.close_input();
  const bool ended = gdb.wait(deadline_in(std::chrono::seconds{200})).has_value();
  Steps steps = parse_native(gdb.output().text());
  if (!ended || steps.instructions.empty()) {
    ADD_FAILURE() << "native stepping failed:\n" << gdb.output().text();
  }
  return steps;
}

RecordedCounts recorded_counts(GdbSession& gdb) {
  const std::string info = gdb.run("info record");
  static const std::regex pattern{
      R"(Recorded (\d+) instructions in (\d+) functions \((\d+) gaps\))"};
  std::smatch found;
  if (!std::regex_search(info, found, pattern)) {
    ADD_FAILURE() << "no counts in: " << info;
    return {};
  }
  return {std::stoul(found[1]), std::stoul(found[2]), std::stoul(found[3])};
}

Steps recorded_steps(GdbSession& gdb) {
  Steps steps;
  const RecordedCounts counts = recorded_counts(gdb);
  if (counts.instructions == 0) return steps;
  std::istringstream instructions{
      gdb.run(fmt::format("record instruction-history 1,{}", counts.instructions))};
  for (std::string line; std::getline(instructions, line);) {
    const std::size_t at = line.find("0x");
    if (at != std::string::npos) steps.instructions.push_back(hex(line.substr(at)));
  }
  std::istringstream functions{
      gdb.run(fmt::format("record function-call-history /i 1,{}", counts.functions))};
  static const std::regex pattern{R"(^\d+\t *(.+)\tinst (\d+),(\d+)$)"};
  for (std::string line; std::getline(functions, line);) {
    std::smatch found;
    if (!std::regex_match(line, found, pattern)) continue;
    steps.stretches.push_back(
        {without_blanks(found[1]), std::stoul(found[2]), std::stoul(found[3])});
  }
  return steps;
}

std::string difference(const std::vector<std::uint64_t>& expected,
                       const std::vector<std::uint64_t>& actual) {
  if (expected == actual) return {};
  const auto at = static_cast<std::size_t>(
      std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end()).first -
      expected.begin());
  std::string text = fmt::format("{} instructions expected, {} recorded; first difference at {}\n",
                                 expected.size(), actual.size(), at + 1);
  for (std::size_t i = at < 5 ? 0 : at - 5; i < at + 5; ++i) {
    text += fmt::format("  {:6}  {:#14x} {:#14x}\n", i + 1, i < expected.size() ? expected[i] : 0,
                        i < actual.size() ? actual[i] : 0);
  }
  return text;
}

}  // namespace backtrail::test
