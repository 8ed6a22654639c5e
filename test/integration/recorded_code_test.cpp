// SPDX-License-Identifier: Apache-2.0
// Compares the code that the recorder tells with the code of a program that is stepped.

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "arch/insn.hpp"
#include "decoder/trace/code_history.hpp"
#include "stepped_program.hpp"

namespace backtrail::tracee {
namespace {

struct Case {
  std::string program;
  std::vector<std::string> arguments;
  int stops = 0;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.program;
  for (const std::string& argument : info.param.arguments) name += "_" + argument;
  return info.param.stops != 0 ? name + "_interrupted" : name;
}

using Bytes = std::array<std::uint8_t, arch::kMaxInsnBytes>;

class RecordedCode : public testing::TestWithParam<Case> {};

TEST_P(RecordedCode, IsWhatTheProgramExecuted) {
  const auto& [program, arguments, stops] = GetParam();
  const Outcome recorded =
      run_recorded({.program = program, .arguments = arguments, .stops = stops, .from = "main"});
  const auto& facts = recorded.threads[0]->facts;
  EXPECT_TRUE(std::ranges::is_sorted(facts, {}, &decoder::ValueFact::record));
  decoder::CodeHistory history{arch::Isa::kAmd64, facts};
  std::map<TraceeAddr, Bytes> first;
  std::size_t told = 0;
  std::size_t changed = 0;
  std::size_t changed_and_told = 0;
  step_through(
      program, arguments, [&](Thread& thread, const Place& place, const arch::cpu::UserRegs&) {
        const auto& [record, pc] = place;
        Bytes now{};
        (void)thread.process().read_code(pc, now);
        const bool is_changed = first.try_emplace(pc, now).first->second != now;
        changed += is_changed ? 1 : 0;
        const decoder::ExecutedInsn* insn = history.at(record, pc);
        if (insn == nullptr) return;
        ++told;
        changed_and_told += is_changed ? 1 : 0;
        EXPECT_TRUE(std::ranges::equal(insn->view(), std::span{now}.first(insn->facts.length)))
            << "record " << record << ", " << std::hex << pc.value();
      });
  std::printf("%zu told, of %zu changed ones %zu\n", told, changed, changed_and_told);
  EXPECT_GT(changed, 0U);
  EXPECT_GT(changed_and_told * 100, changed * (stops == 0 ? 90 : 50));
}

INSTANTIATE_TEST_SUITE_P(Programs, RecordedCode,
                         testing::Values(Case{"rewritten", {}}, Case{"jumps_into_written", {}},
                                         Case{"rewritten", {}, 200},
                                         Case{"jumps_into_written", {}, 200}),
                         name_of);

/// The page is write-protected when it has run often; then superblocks lead into it from the
/// program's file.
TEST(RecordedCodeOf, AHotPageIsTold) {
  const Outcome recorded = run_recorded({.program = "hot_page", .from = "main"});
  ASSERT_TRUE(recorded.exited_with(0));
  constexpr TraceeAddr kPage{0x20000000};
  constexpr std::size_t kCalls = 400'000;
  decoder::CodeHistory history{arch::Isa::kAmd64, recorded.threads[0]->facts};
  std::size_t calls = 0;
  std::size_t told = 0;
  std::size_t wrong = 0;
  const auto& records = recorded.records();
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].to != kPage) continue;
    const std::size_t version = 1 + calls++ / kCalls;
    const decoder::ExecutedInsn* insn = history.at(i, kPage);
    if (insn == nullptr) continue;
    ++told;
    if (insn->bytes[1] != version) ++wrong;
  }
  EXPECT_EQ(calls, 3 * kCalls);
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(told * 100, calls * 99);
}

}  // namespace
}  // namespace backtrail::tracee
