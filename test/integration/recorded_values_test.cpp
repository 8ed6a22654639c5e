// SPDX-License-Identifier: Apache-2.0
// Compares values that translated code records, newly made or kept, with the registers of a program
// that is stepped.

#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/cpu/registers.hpp"
#include "cache_run.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::UserRegs;

/// General registers by their encoding.
constexpr std::array<UserReg, 16> kGeneral{
    UserReg::kRax, UserReg::kRcx, UserReg::kRdx, UserReg::kRbx, UserReg::kRsp, UserReg::kRbp,
    UserReg::kRsi, UserReg::kRdi, UserReg::kR8,  UserReg::kR9,  UserReg::kR10, UserReg::kR11,
    UserReg::kR12, UserReg::kR13, UserReg::kR14, UserReg::kR15};

/// Number of the record that a place follows, and its pc.
using Place = std::pair<std::uint64_t, TraceeAddr>;

struct Case {
  std::string program;
  std::vector<std::string> arguments;
  int stops = 0;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.program;
  for (const std::string& argument : info.param.arguments) name += "_" + argument;
  return info.param.stops == 0 ? name : name + "_interrupted";
}

/// Steps a program from main() on. Returns its registers at each place.
std::map<Place, UserRegs> step_through(const Case& which) {
  std::map<Place, UserRegs> out;
  EngineDriver driver{SourceKind::kStep};
  const pid_t pid = driver.launch(which.program, which.arguments);
  const ThreadId id{pid, pid};
  const BreakpointSpec begin = software(symbol_of(which.program, "main"));
  EXPECT_TRUE(driver.engine.insert(pid, begin));
  EXPECT_TRUE(driver.run());
  EXPECT_TRUE(driver.engine.remove(pid, begin));
  Outcome outcome;
  collect(driver, id, {}, outcome);
  int signal = 0;
  while (Thread* thread = driver.engine.find(id)) {
    thread->trace()->flush();
    const auto regs = thread->user_regs();
    if (!regs) break;
    out.emplace(Place{outcome.records().size() - 1, regs->pc()}, *regs);
    driver.resume(id, {.kind = ResumeKind::kStep, .signal = signal});
    const auto event = driver.await();
    if (!event) {
      ADD_FAILURE() << which.program << " does not end";
      break;
    }
    signal = event->kind == StopKind::kSignal && event->signal != SIGTRAP ? event->signal : 0;
  }
  return out;
}

/// Compares the values of the first thread.
void judge(const Outcome& recorded, const std::map<Place, UserRegs>& truth) {
  std::size_t compared = 0;
  std::size_t wrong = 0;
  for (const decoder::ValueFact& fact : recorded.threads[0]->facts) {
    const auto there = truth.find({fact.record, fact.pc});
    // A signal may come between the record of a value and its instruction.
    if (there == truth.end()) continue;
    ++compared;
    const std::uint64_t is = there->second[kGeneral.at(fact.reg)];
    if (fact.value == is || ++wrong > 5) continue;
    ADD_FAILURE() << std::hex << "register " << int{fact.reg} << " at " << fact.pc.value()
                  << " after record " << std::dec << fact.record << std::hex << ": " << fact.value
                  << ", truly " << is;
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(compared, 10U);
  EXPECT_GE(compared * 100, recorded.threads[0]->facts.size() * 99);
  std::printf("%zu of %zu values compared\n", compared, recorded.threads[0]->facts.size());
}

RunOptions options_of(const Case& which) {
  return {.program = which.program,
          .arguments = which.arguments,
          .stops = which.stops,
          .from = "main",
          .values = ValueDepth::kMost};
}

class RecordedValues : public testing::TestWithParam<Case> {};

TEST_P(RecordedValues, AreThoseOfTheSteppedProgram) {
  judge(run_recorded(options_of(GetParam())), step_through(GetParam()));
}

/// Programs whose registers are the same in every run: they ask for no process ids, random values
/// or memory.
INSTANTIATE_TEST_SUITE_P(Programs, RecordedValues,
                         testing::Values(Case{"vectors_static", {}}, Case{"coroutines", {}},
                                         Case{"branches", {"recursion"}},
                                         Case{"branches", {"sort"}}, Case{"branches", {"strings"}},
                                         Case{"branches", {"longjmp"}},
                                         Case{"branches", {"sort"}, 300}),
                         name_of);

class KeptValues : public testing::TestWithParam<Case> {};

TEST_P(KeptValues, AreThoseOfTheSteppedProgram) {
  const test::TemporaryFolder folder;
  const auto truth = step_through(GetParam());
  std::uint64_t first_made = 0;
  for (int i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    RunOptions options = options_of(GetParam());
    options.kept = std::make_shared<cache::PersistentStore>(folder / "kept");
    options.sums = std::make_shared<SourceStatistics>();
    judge(run_recorded(options), truth);
    if (i == 0) {
      first_made = options.sums->superblocks;
    } else {
      EXPECT_LT(options.sums->superblocks * 2, first_made);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, KeptValues,
                         testing::Values(Case{"vectors_static", {}}, Case{"coroutines", {}},
                                         Case{"branches", {"recursion"}},
                                         Case{"branches", {"strings"}},
                                         Case{"branches", {"longjmp"}}, Case{"branches", {"sort"}},
                                         Case{"branches", {"sort"}, 300}),
                         name_of);

}  // namespace
}  // namespace backtrail::tracee
