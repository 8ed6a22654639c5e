// The `cache` source against the `step` source, record by record, and against itself under
// disturbance.

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "decoder/bts/branch_store.hpp"
#include "elf_symbols.hpp"
#include "ptrace/source/thread_trace.hpp"
#include "traced_program.hpp"

namespace backtrail::tracee {
namespace {

struct ProgramCase {
  std::string program;
  std::vector<std::string> arguments = {};
};

void PrintTo(const ProgramCase& c, std::ostream* out) {
  *out << c.program;
  for (const std::string& argument : c.arguments) *out << ' ' << argument;
}

std::string name_of(const testing::TestParamInfo<ProgramCase>& info) {
  std::string name = info.param.program;
  for (const std::string& argument : info.param.arguments) name += "_" + argument;
  return name;
}

void expect_equal(const std::vector<decoder::Record>& cached,
                  const std::vector<decoder::Record>& stepped) {
  for (std::size_t i = 0; i < std::min(cached.size(), stepped.size()); ++i) {
    ASSERT_EQ(cached[i], stepped[i])
        << "record " << i << " of " << stepped.size() << std::hex << ": " << cached[i].from.value()
        << " -> " << cached[i].to.value() << ", stepped " << stepped[i].from.value() << " -> "
        << stepped[i].to.value();
  }
  EXPECT_EQ(cached.size(), stepped.size());
}

class CacheTrace : public testing::TestWithParam<ProgramCase> {
 protected:
  static void compare(RunOptions options) {
    const Outcome cached = run_recorded(options);
    options.source = SourceKind::kStep;
    const Outcome stepped = run_recorded(options);
    EXPECT_EQ(cached.end.kind, stepped.end.kind);
    EXPECT_EQ(cached.end.exit_code, stepped.end.exit_code);
    EXPECT_FALSE(stepped.records().empty());
    expect_equal(cached.records(), stepped.records());
  }
};

TEST_P(CacheTrace, EqualsTheSteppedTraceRecordByRecord) {
  compare({.program = GetParam().program, .arguments = GetParam().arguments, .from = "main"});
}

class CacheTraceFromTheStart : public CacheTrace {};

TEST_P(CacheTraceFromTheStart, EqualsTheSteppedTraceRecordByRecord) {
  compare({.program = GetParam().program, .arguments = GetParam().arguments});
}

/// Compared from their very first instruction on.
std::vector<ProgramCase> small_programs() {
  return {{"three_steps"}, {"corners"}, {"plain_static"}, {"plain"}};
}

/// Compared from main() on.
std::vector<ProgramCase> other_programs() {
  return {{"vectors_static"},
          {"calls_static"},
          {"calls_static", {"30"}},
          {"jumps_static"},
          {"signals_static"},
          {"coroutines"},
          {"faults"},
          {"masks"},
          {"rewritten"},
          {"segments"},
          {"sandbox"},
          {"branches"},
          {"branches", {"switch"}},
          {"branches", {"goto"}},
          {"branches", {"varargs"}},
          {"branches", {"recursion"}},
          {"branches", {"tail"}},
          {"branches", {"sort"}},
          {"branches", {"strings"}},
          {"branches", {"numbers"}},
          {"branches", {"float"}},
          {"branches", {"longjmp"}},
          {"branches", {"heap"}},
          {"plain_no_pie"},
          {"calls_no_pie"},
          {"exits_static", {"3"}},
          {"exits_static", {"segv"}},
          {"exits_static", {"abort"}}};
}

TEST(CacheTracePrograms, AreAtLeastThirty) {
  EXPECT_GE(small_programs().size() + other_programs().size(), 30U);
}

INSTANTIATE_TEST_SUITE_P(Programs, CacheTraceFromTheStart, testing::ValuesIn(small_programs()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Programs, CacheTrace, testing::ValuesIn(other_programs()), name_of);

class CacheUnderStops : public testing::TestWithParam<ProgramCase> {};

TEST_P(CacheUnderStops, RecordsTheSameWhenInterruptedAnywhere) {
  RunOptions options{.program = GetParam().program, .arguments = GetParam().arguments};
  const Outcome calm = run_recorded(options);
  options.stops = 400;
  const Outcome disturbed = run_recorded(options);
  EXPECT_EQ(disturbed.end.kind, calm.end.kind);
  EXPECT_EQ(disturbed.end.exit_code, calm.end.exit_code);
  expect_equal(disturbed.records(), calm.records());
}

INSTANTIATE_TEST_SUITE_P(Programs, CacheUnderStops,
                         testing::Values(ProgramCase{"plain_static"}, ProgramCase{"calls_static"},
                                         ProgramCase{"calls"}, ProgramCase{"signals"},
                                         ProgramCase{"faults"}, ProgramCase{"branches"},
                                         ProgramCase{"corners"}, ProgramCase{"coroutines"}),
                         name_of);

TEST(CacheConsumers, SeeWhatEachWouldSeeAlone) {
  Collector all;
  decoder::BranchStore small;
  decoder::BranchStore first_ones;
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("calls");
  const ThreadId id{pid, pid};
  ASSERT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  Thread* thread = driver.engine.find(id);
  ASSERT_TRUE(thread != nullptr && thread->trace());
  ASSERT_TRUE(small.config({.size_bytes = 100 * 24}));
  ASSERT_TRUE(
      first_ones.config({.size_bytes = 50 * 24, .overflow = decoder::StoreOverflow::kSignal}));
  thread->trace()->hub().add(all);
  thread->trace()->hub().add(small);
  thread->trace()->hub().add(first_ones);
  driver.resume(id, ResumeAction{});
  ASSERT_TRUE(driver.await());
  decoder::BranchStore small_alone;
  decoder::BranchStore first_alone;
  ASSERT_TRUE(small_alone.config({.size_bytes = 100 * 24}));
  ASSERT_TRUE(
      first_alone.config({.size_bytes = 50 * 24, .overflow = decoder::StoreOverflow::kSignal}));
  for (const decoder::Record& record : all.all) {
    small_alone.consume({&record, 1});
    first_alone.consume({&record, 1});
  }
  ASSERT_GT(all.all.size(), 200U);
  EXPECT_EQ(*small.drain(), *small_alone.drain());
  EXPECT_EQ(*first_ones.drain(), *first_alone.drain());
}

/// The records that begin and end in the program's own code: libraries wait and contend.
std::vector<decoder::Record> own_records(const std::vector<decoder::Record>& all,
                                         std::uint64_t begin, std::uint64_t end) {
  std::vector<decoder::Record> own;
  for (const decoder::Record& record : all) {
    const auto inside = [&](TraceeAddr at) { return at.value() >= begin && at.value() < end; };
    if (inside(record.from) && inside(record.to)) own.push_back(record);
  }
  return own;
}

class CacheThreads : public testing::TestWithParam<ProgramCase> {};

TEST_P(CacheThreads, EachHasTheTraceThatSteppingGives) {
  const auto symbols = read_elf_symbols(inferior_path(GetParam().program));
  const std::uint64_t begin = symbols.at("_start");
  const std::uint64_t end = symbols.at("_fini");
  RunOptions options{
      .program = GetParam().program, .arguments = GetParam().arguments, .threads = true};
  const Outcome cached = run_recorded(options);
  options.source = SourceKind::kStep;
  const Outcome stepped = run_recorded(options);
  EXPECT_TRUE(cached.exited_with(0)) << cached.statistics;
  EXPECT_TRUE(stepped.exited_with(0));
  const auto sorted = [&](const Outcome& outcome) {
    // Threads may be told of in another order than that of their birth.
    std::vector<std::vector<decoder::Record>> traces;
    for (const auto& thread : outcome.threads) {
      traces.push_back(own_records(thread->all, begin, end));
    }
    std::sort(traces.begin(), traces.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return traces;
  };
  const auto cached_traces = sorted(cached);
  const auto stepped_traces = sorted(stepped);
  ASSERT_EQ(cached_traces.size(), stepped_traces.size());
  for (std::size_t i = 0; i < stepped_traces.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_FALSE(stepped_traces[i].empty());
    expect_equal(cached_traces[i], stepped_traces[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CacheThreads,
                         testing::Values(ProgramCase{"threads_no_pie"},
                                         ProgramCase{"churn_no_pie", {"3"}}),
                         name_of);

}  // namespace
}  // namespace backtrail::tracee
