// SPDX-License-Identifier: Apache-2.0
// Compares values that translated code records, newly made or kept, with the registers of a program
// that is stepped.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arch/cpu/general_registers.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/cpu/values.hpp"
#include "arch/x86/translate/value_registers.hpp"
#include "cache_run.hpp"
#include "ptrace/codecache/persist/persistent_store.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "stepped_program.hpp"
#include "test/support/effort.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::UserRegs;
using arch::cpu::values::kGeneralRegisters;

struct Case {
  std::string program;
  std::vector<std::string> arguments;
  int stops = 0;
  ValueDepth values = ValueDepth::kMost;
};

/// The program's state before an instruction.
struct Truth {
  UserRegs regs;
  /// Memory that the instruction is going to overwrite.
  std::array<std::uint8_t, 64> overwritten{};
  bool steps_change_overwritten = false;
  bool is_cpuid = false;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.program;
  for (const std::string& argument : info.param.arguments) name += "_" + argument;
  if (info.param.stops != 0) name += "_interrupted";
  return info.param.values == ValueDepth::kAll ? name + "_all" : name;
}

/// swapcontext() stores the control register of SSE over the selector of x87 data that fnstenv has
/// stored. A context switch, and so a step, clears that selector on CPUs that have it (AMD64 APM
/// vol. 2, "FXSAVE and FXRSTOR Instructions": the 64-bit form keeps no selectors).
bool is_stmxcsr(std::span<const std::uint8_t> bytes) {
  return bytes[0] == 0x0f && bytes[1] == 0xae && (bytes[2] >> 3 & 7) == 3;
}

constexpr std::array<std::uint8_t, 2> kCpuid{0x0f, 0xa2};

bool is_cpuid(std::span<const std::uint8_t> bytes) {
  return std::ranges::equal(bytes.first(kCpuid.size()), kCpuid);
}

Truth read_truth(Thread& thread, const UserRegs& regs) {
  namespace translate = arch::x86::translate;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t length = thread.process().read_code(regs.pc(), bytes);
  Truth out{
      .regs = regs, .steps_change_overwritten = is_stmxcsr(bytes), .is_cpuid = is_cpuid(bytes)};
  const auto insn = translate::decode_source(regs.pc(), std::span{bytes}.first(length));
  const translate::StoredPlace place = translate::value_registers(insn).stored;
  if (place.bytes == 0) return out;
  TraceeAddr address = insn.target;
  if (!place.is_relative) {
    address = TraceeAddr{static_cast<std::uint64_t>(std::int64_t{place.at.displacement})};
    const auto reg = [&](translate::Gpr which_reg) {
      return regs[kGeneralRegisters.at(static_cast<std::size_t>(which_reg))];
    };
    if (place.at.base) address = address + reg(*place.at.base);
    if (place.at.index) address = address + (reg(*place.at.index) << place.at.scale_bits);
  }
  if (place.is_fs) address = address + regs[UserReg::kFsBase];
  (void)thread.process().read_memory(address, std::span{out.overwritten}.first(place.bytes));
  return out;
}

std::uint64_t value_of(const Truth& truth, arch::ValueKind kind) {
  if (kind == arch::kFlagsKind) {
    return truth.regs[UserReg::kEflags] & arch::cpu::values::kTrackedFlags;
  }
  const auto old = arch::old_bytes_of(kind);
  if (!old) return truth.regs[kGeneralRegisters.at(kind)];
  std::uint64_t value = 0;
  std::memcpy(&value, truth.overwritten.data() + 8UL * old->part, old->size);
  return value;
}

/// Returns the program's state at each place.
std::map<Place, Truth> states_of(const Case& which) {
  std::map<Place, Truth> out;
  step_through(which.program, which.arguments,
               [&out](Thread& thread, const Place& place, const UserRegs& regs) {
                 out.emplace(place, read_truth(thread, regs));
               });
  return out;
}

/// Steps a program twice. What differs depends on random values, such as the stack protector's, and
/// is not among the truths.
std::map<Place, std::array<Truth, 2>> truths_of(const Case& which) {
  std::map<Place, std::array<Truth, 2>> out;
  const auto second = states_of(which);
  for (const auto& [place, truth] : states_of(which)) {
    if (const auto same = second.find(place); same != second.end()) {
      out.emplace(place, std::array{truth, same->second});
    }
  }
  return out;
}

/// Returns true if no step has stopped at the place because it follows a CPUID, whose step ends an
/// instruction late on some virtual machines (Stepper::ran_along).
bool is_stepped_over(const Place& place, const std::map<Place, std::array<Truth, 2>>& truth) {
  const auto before = truth.find({place.first, place.second - kCpuid.size()});
  return before != truth.end() && before->second[0].is_cpuid;
}

/// Compares the values of the first thread.
void judge(const Outcome& recorded, const std::map<Place, std::array<Truth, 2>>& truth) {
  std::size_t compared = 0;
  std::size_t stepped_over = 0;
  std::size_t wrong = 0;
  for (const decoder::ValueFact& fact : recorded.threads[0]->facts) {
    const auto there = truth.find({fact.record, fact.pc});
    if (there == truth.end()) {
      // Otherwise a signal came between the record of a value and its instruction.
      if (is_stepped_over({fact.record, fact.pc}, truth)) ++stepped_over;
      continue;
    }
    ++compared;
    if (arch::old_bytes_of(fact.kind) && there->second[0].steps_change_overwritten) continue;
    const std::uint64_t is = value_of(there->second[0], fact.kind);
    if (is != value_of(there->second[1], fact.kind)) continue;
    if (fact.value == is || ++wrong > 5) continue;
    ADD_FAILURE() << std::hex << "kind " << int{fact.kind} << " at " << fact.pc.value()
                  << " after record " << std::dec << fact.record << std::hex << ": " << fact.value
                  << ", truly " << is;
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(compared, 10U);
  EXPECT_GE(compared * 100, (recorded.threads[0]->facts.size() - stepped_over) * 99);
  std::printf("%zu of %zu values compared\n", compared, recorded.threads[0]->facts.size());
}

RunOptions options_of(const Case& which) {
  return {.program = which.program,
          .arguments = which.arguments,
          .stops = which.stops,
          .from = "main",
          .values = which.values};
}

class RecordedValues : public testing::TestWithParam<Case> {};

TEST_P(RecordedValues, AreThoseOfTheSteppedProgram) {
  judge(run_recorded(options_of(GetParam())), truths_of(GetParam()));
}

/// Programs whose registers are the same in every run: they ask for no process ids, random values
/// or memory.
INSTANTIATE_TEST_SUITE_P(
    Programs, RecordedValues,
    testing::ValuesIn(
        test::every(2, std::vector{Case{"vectors_static", {}}, Case{"coroutines", {}},
                                   Case{"branches", {"recursion"}}, Case{"branches", {"sort"}},
                                   Case{"branches", {"strings"}}, Case{"branches", {"longjmp"}},
                                   Case{"branches", {"sort"}, 300}, Case{"delivered", {}},
                                   Case{"delivered", {}, 0, ValueDepth::kAll},
                                   Case{"vectors_static", {}, 0, ValueDepth::kAll},
                                   Case{"coroutines", {}, 0, ValueDepth::kAll},
                                   Case{"branches", {"recursion"}, 0, ValueDepth::kAll},
                                   Case{"branches", {"sort"}, 0, ValueDepth::kAll},
                                   Case{"branches", {"strings"}, 0, ValueDepth::kAll},
                                   Case{"branches", {"longjmp"}, 0, ValueDepth::kAll},
                                   Case{"branches", {"sort"}, 300, ValueDepth::kAll}})),
    name_of);

TEST(RecordedSignals, HaveTheRegistersOfBothSides) {
  const Outcome recorded = run_recorded(options_of({"delivered", {}}));
  const auto& facts = recorded.threads[0]->facts;
  const auto has_flags = [&](std::uint64_t record, TraceeAddr pc) {
    return std::ranges::any_of(facts, [&](const decoder::ValueFact& fact) {
      return fact.kind == arch::kFlagsKind && fact.record == record && fact.pc == pc;
    });
  };
  const auto& records = recorded.records();
  int signals = 0;
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].kind != decoder::RecordKind::kAsync) continue;
    ++signals;
    EXPECT_TRUE(has_flags(i - 1, records[i].from)) << i;
    EXPECT_TRUE(has_flags(i, records[i].to)) << i;
  }
  EXPECT_EQ(signals, 40);
}

class KeptValues : public testing::TestWithParam<Case> {};

TEST_P(KeptValues, AreThoseOfTheSteppedProgram) {
  const test::TemporaryFolder folder;
  const auto truth = truths_of(GetParam());
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

INSTANTIATE_TEST_SUITE_P(
    Programs, KeptValues,
    testing::ValuesIn(
        test::every(2, std::vector{Case{"vectors_static", {}}, Case{"coroutines", {}},
                                   Case{"branches", {"recursion"}}, Case{"branches", {"strings"}},
                                   Case{"branches", {"longjmp"}}, Case{"branches", {"sort"}},
                                   Case{"branches", {"sort"}, 300},
                                   Case{"vectors_static", {}, 0, ValueDepth::kAll},
                                   Case{"branches", {"recursion"}, 0, ValueDepth::kAll},
                                   Case{"branches", {"sort"}, 300, ValueDepth::kAll}})),
    name_of);

}  // namespace
}  // namespace backtrail::tracee
