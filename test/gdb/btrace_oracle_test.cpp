// SPDX-License-Identifier: Apache-2.0
// gdb's branch trace equals native stepping, instruction by instruction.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/gdb/on_program.hpp"
#include "test/gdb/trace_oracle.hpp"
#include "test/support/effort.hpp"
#include "test/support/machine.hpp"

namespace backtrail::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Passage {
  const char* name;
  const char* program;
  const char* begin;
  const char* end;
  const char* format;
};

void PrintTo(const Passage& passage, std::ostream* out) {
  *out << passage.name;
}

std::vector<std::string> program_of(const Passage& passage) {
  std::vector<std::string> program{inferior(passage.program)};
  if (program[0].ends_with("loads")) program.push_back(inferior("libloaded.so"));
  return program;
}

/// Returns a session that has recorded the passage.
std::unique_ptr<GdbSession> recorded_passage(const Passage& passage,
                                             const std::string& buffer_bytes,
                                             std::string_view source = "auto") {
  GdbOptions options = by(source, {});
  options.program = program_of(passage);
  auto gdb = std::make_unique<GdbSession>(std::move(options));
  gdb->run_all({"handle SIGUSR1 nostop noprint pass",
                fmt::format("set record btrace bts buffer-size {}", buffer_bytes),
                fmt::format("set record btrace pt buffer-size {}", buffer_bytes),
                fmt::format("tbreak {}", passage.begin), "continue"});
  EXPECT_THAT(gdb->run(std::string{"record btrace "} + passage.format), IsEmpty());
  gdb->run_all({fmt::format("break {}", passage.end), "continue"});
  return gdb;
}

class BtraceOracle : public ::testing::TestWithParam<Passage> {};

TEST_P(BtraceOracle, AgreesWithNativeSteps) {
  if (!can_run_inferior(inferior(GetParam().program))) GTEST_SKIP() << kNo32Bits;
  const Steps expected = native_steps(program_of(GetParam()), GetParam().begin, GetParam().end);
  for (const char* source : {"step", "cache"}) {
    SCOPED_TRACE(source);
    auto gdb = recorded_passage(GetParam(), "unlimited", source);
    const RecordedCounts counts = recorded_counts(*gdb);
    EXPECT_EQ(counts.instructions, expected.instructions.size());
    EXPECT_EQ(counts.gaps, 0U);
    const Steps actual = recorded_steps(*gdb);
    EXPECT_EQ(difference(expected.instructions, actual.instructions), "");
    std::vector<Stretch> stretches = actual.stretches;
    // gdb lists the current function even if no instruction of it has run.
    if (stretches.size() == expected.stretches.size() + 1) stretches.pop_back();
    EXPECT_EQ(stretches, expected.stretches);
  }
}

std::vector<Passage> passages() {
  std::vector<Passage> all{
      {"CallsBts", "calls", "touch_global", "*all_done", "bts"},
      {"DispatchPt", "dispatch", "began", "*ended", "pt"},
      {"I386Bts", "calls_i386", "touch_global", "*all_done", "bts"},
      {"LongJumpSignalAndSystemCallPt", "jumps", "main", "*finished", "pt"},
      {"ForkBts", "forks", "main", "*in_parent", "bts"},
      {"LibraryCallBts", "loads", "loaded", "*called", "bts"},
  };
  if (kSanitized) return all;  // the other cases run the same code
  const std::vector<Passage> others{
      {"CallsPt", "calls", "touch_global", "*all_done", "pt"},
      {"StaticBts", "calls_static", "touch_global", "*all_done", "bts"},
      {"NoPiePt", "calls_no_pie", "touch_global", "*all_done", "pt"},
      {"DispatchBts", "dispatch", "began", "*ended", "bts"},
      {"DispatchWhatGdbPrefers", "dispatch", "began", "*ended", ""},
      {"LongJumpSignalAndSystemCallBts", "jumps", "main", "*finished", "bts"},
      {"ForkPt", "forks", "main", "*in_parent", "pt"},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gdb, BtraceOracle, ::testing::ValuesIn(passages()),
                         [](const auto& test) { return std::string{test.param.name}; });

TEST(BtraceBuffer, KeepsTheNewestWhenItIsSmall) {
  const Passage passage{"", "calls", "touch_global", "*all_done", "bts"};
  const Steps expected = native_steps(program_of(passage), passage.begin, passage.end);
  auto gdb = recorded_passage(passage, "4096");
  EXPECT_THAT(gdb->run("info record"), HasSubstr("Buffer size: 4kB."));
  const Steps actual = recorded_steps(*gdb);
  ASSERT_GT(actual.instructions.size(), 100U);
  ASSERT_LT(actual.instructions.size(), expected.instructions.size());
  const std::vector<std::uint64_t> newest(
      expected.instructions.end() - static_cast<std::ptrdiff_t>(actual.instructions.size()),
      expected.instructions.end());
  EXPECT_EQ(difference(newest, actual.instructions), "");
}

TEST(BtraceBuffer, BreakpointsOnTheWayChangeNothing) {
  const Passage passage{"", "calls", "touch_global", "*all_done", "bts"};
  const Steps expected = native_steps(program_of(passage), passage.begin, passage.end);
  GdbSession gdb{on("calls")};
  gdb.run_all({"set record btrace bts buffer-size 16777216", "tbreak touch_global", "continue",
               "record btrace bts", "break *all_done"});
  // Stops, conditions that never hold and steps of every size must not show in the trace.
  gdb.run_all({"break fib if n == 1", "break add if a == 12345", "break *moved"});
  gdb.run_all({"continue", "stepi", "next", "continue"});
  for (int i = 0; i < 20; ++i) gdb.run("continue");
  EXPECT_GT(recorded_counts(gdb).instructions, 100U);
  gdb.run_all({"stepi 5", "step", "finish", "delete", "break *all_done", "continue"});
  const Steps actual = recorded_steps(gdb);
  EXPECT_EQ(difference(expected.instructions, actual.instructions), "");
}

}  // namespace
}  // namespace backtrail::test
