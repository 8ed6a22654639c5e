// SPDX-License-Identifier: Apache-2.0
// Compares the `cache` source with the `step` source record by record, and with itself under
// interruptions.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache_run.hpp"
#include "decoder/bts/branch_store.hpp"
#include "elf_symbols.hpp"
#include "ptrace/codecache/memory/spare_memory.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "test/support/effort.hpp"
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

/// Programs compared from their first instruction on.
std::vector<ProgramCase> small_programs() {
  return {{"three_steps"}, {"corners"}, {"plain_static"}, {"plain"}};
}

/// Programs compared from main() on.
std::vector<ProgramCase> other_programs() {
  return {{"vectors_static"},
          {"calls_static"},
          {"calls_static", {"30"}},
          {"jumps_static"},
          {"signals_static"},
          {"coroutines"},
          {"faults"},
          {"handlers"},
          {"masks"},
          {"other_calls"},
          {"rewritten"},
          {"segments"},
          {"sandbox"},
          {"filters", {"alone"}},
          {"filters", {"masked"}},
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
INSTANTIATE_TEST_SUITE_P(Programs, CacheTrace, testing::ValuesIn(test::every(2, other_programs())),
                         name_of);

/// A file's code branches directly into code that changes; code is mapped in all ways.
INSTANTIATE_TEST_SUITE_P(WrittenCode, CacheTrace,
                         testing::Values(ProgramCase{"jumps_into_written"},
                                         ProgramCase{"maps_code"}),
                         name_of);

/// Programs that come after one another in the same memory.
class CacheInSpareMemory : public testing::Test {
 protected:
  static std::string path_of(const ProgramCase& program) {
    return std::filesystem::canonical(BT_INFERIOR_DIR + std::string{"/"} + program.program);
  }
  /// Lets the next program have the memory that the last one has left. Returns where it is; null if
  /// there is none.
  const void* hand_on(const ProgramCase& last, const ProgramCase& next) {
    auto memory = spare_->take(path_of(last));
    if (!memory) return nullptr;
    const void* at = memory->host();
    spare_->give(std::move(memory), path_of(next));
    return at;
  }
  void compare(const ProgramCase& program) {
    RunOptions options{.program = program.program,
                       .arguments = program.arguments,
                       .from = "main",
                       .spare = spare_};
    const Outcome cached = run_recorded(options);
    options.source = SourceKind::kStep;
    const Outcome stepped = run_recorded(options);
    EXPECT_EQ(cached.end.exit_code, stepped.end.exit_code);
    expect_equal(cached.records(), stepped.records());
  }

 private:
  std::shared_ptr<cache::SpareMemory> spare_ = std::make_shared<cache::SpareMemory>();
};

TEST_F(CacheInSpareMemory, EqualsTheSteppedTraceRecordByRecord) {
  const std::vector<ProgramCase> programs{{"plain_no_pie"},           {"calls_static", {"30"}},
                                          {"signals_static"},         {"rewritten"},
                                          {"exits_static", {"segv"}}, {"plain_no_pie"}};
  const void* at = nullptr;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(programs[i]));
    compare(programs[i]);
    const void* const now = hand_on(programs[i], programs[(i + 1) % programs.size()]);
    ASSERT_NE(now, nullptr) << "no leases on memory files?";
    if (at == nullptr) at = now;
    EXPECT_EQ(now, at);
  }
}

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
                                         ProgramCase{"faults"}, ProgramCase{"handlers"},
                                         ProgramCase{"branches"}, ProgramCase{"corners"},
                                         ProgramCase{"coroutines"}),
                         name_of);

/// Runs a program from its first instruction to its end, with one store for each configuration.
std::vector<std::vector<decoder::BranchStore::Entry>> run_with(
    const std::vector<decoder::StoreConfig>& configs) {
  std::vector<decoder::BranchStore> stores(configs.size());
  EngineDriver driver{SourceKind::kCache};
  const pid_t pid = driver.launch("calls_static");
  const ThreadId id{pid, pid};
  EXPECT_TRUE(driver.engine.enable_trace(id, {TraceFormat::kBts, 0}));
  Thread* thread = driver.engine.find(id);
  if (thread == nullptr || !thread->trace()) return {};
  for (std::size_t i = 0; i < configs.size(); ++i) {
    EXPECT_TRUE(stores[i].config(configs[i]));
    thread->trace()->hub().add(stores[i]);
  }
  driver.resume(id, ResumeAction{});
  EXPECT_TRUE(driver.await());
  std::vector<std::vector<decoder::BranchStore::Entry>> seen;
  seen.reserve(configs.size());
  for (decoder::BranchStore& store : stores)
    seen.push_back(store.drain().value_or(std::vector<decoder::BranchStore::Entry>{}));
  return seen;
}

TEST(CacheConsumers, SeeWhatEachWouldSeeAlone) {
  using decoder::StoreOverflow;
  const std::vector<decoder::StoreConfig> configs{
      {.size_bytes = 100 * 24},                                       // the newest
      {.size_bytes = 50 * 24, .overflow = StoreOverflow::kSignal},    // the first
      {.size_bytes = 1 << 20, .sched = true, .kernel = true},         // everything
      {.size_bytes = 10 * 24, .trace = false, .sched = true},         // no branches
      {.size_bytes = 200 * 24, .overflow = StoreOverflow::kStream}};  // no reader drains it
  const auto together = run_with(configs);
  ASSERT_EQ(together.size(), configs.size());
  EXPECT_EQ(together[0].size(), 100U);
  EXPECT_EQ(together[1].size(), 50U);
  EXPECT_GT(together[2].size(), 200U);
  EXPECT_TRUE(together[3].empty());
  EXPECT_EQ(together[4].size(), 200U);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const auto alone = run_with({configs[i]});
    ASSERT_EQ(alone.size(), 1U);
    EXPECT_EQ(together[i], alone[0]) << "consumer " << i;
  }
}

/// Returns the records within the program's own code: libraries wait and contend.
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
    // Threads may be reported in another order than that of their creation.
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
