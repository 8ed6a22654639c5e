// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_trail.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

using Kind = TrailPart::Kind;

/// mov $kData, %rdi
const Bytes rdi_is_data{0x48, 0xc7, 0xc7, 0x00, 0x00, 0x60, 0x00};

class ValueTrailTest : public ::testing::Test {
 protected:
  ValueHistory history() {
    const Window& whole = p.window;
    return {whole.steps.size(),
            [&whole](std::size_t begin, std::size_t end) {
              Window part;
              part.steps.assign(whole.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                                whole.steps.begin() + static_cast<std::ptrdiff_t>(end));
              for (Event event : whole.events) {
                if (event.before <= begin || event.before > end) continue;
                event.before -= begin;
                part.events.push_back(event);
              }
              part.end_pc = end < whole.steps.size() ? whole.steps[end].pc : whole.end_pc;
              return part;
            },
            p,
            p,
            16384,
            {.window_steps = 3}};
  }
  std::vector<TrailPart> of_data(unsigned bytes = 8) {
    ValueHistory values = history();
    return trail_of_memory(values, p.window.steps.size(), TraceeAddr{kData}, bytes);
  }
  std::vector<TrailPart> of_register(Slot slot) {
    ValueHistory values = history();
    return trail_of_register(values, p.window.steps.size(), slot);
  }
  static std::vector<Kind> kinds(const std::vector<TrailPart>& trail) {
    std::vector<Kind> out;
    out.reserve(trail.size());
    for (const TrailPart& part : trail) out.push_back(part.kind);
    return out;
  }

  Program p;
};

TEST_F(ValueTrailTest, NothingMoreIsSolvedAfterTheDeadline) {
  p.run({0xb8, 0x07, 0x00, 0x00, 0x00});  // mov $7, %eax
  for (int i = 0; i < 6; ++i) p.run({0x90});
  p.regs[cpu::kRax] = cpu::known(7);
  ValueHistory values = history();
  values.set_deadline(ValueHistory::Clock::time_point::min());
  EXPECT_EQ(values.reg(1, Slot{cpu::kRax}).mask, 0);
  EXPECT_EQ(values.windows(), 0);
  values.set_deadline(std::nullopt);
  EXPECT_EQ(values.reg(1, Slot{cpu::kRax}).mask, ~std::uint64_t{0});
  EXPECT_GT(values.windows(), 1);
  // Windows that have been solved stay known.
  values.set_deadline(ValueHistory::Clock::time_point::min());
  EXPECT_EQ(values.reg(1, Slot{cpu::kRax}).mask, ~std::uint64_t{0});
}

TEST_F(ValueTrailTest, GoesThroughMemoryAndRegistersToAConstant) {
  p.run(rdi_is_data);
  p.run({0xc7, 0x47, 0x10, 0x07, 0x00, 0x00, 0x00});  // movl $7, 0x10(%rdi)
  p.run({0x90});
  p.run({0x90});
  p.run({0x8b, 0x47, 0x10});  // mov 0x10(%rdi), %eax
  p.run({0x89, 0xc1});        // mov %eax, %ecx
  p.run({0x89, 0x0f});        // mov %ecx, (%rdi)
  p.memory[kData] = p.memory[kData + 0x10] = 7;
  p.regs[cpu::kRdi] = cpu::known(kData);
  const auto trail = of_data(4);
  ASSERT_EQ(kinds(trail),
            (std::vector{Kind::kStored, Kind::kLoaded, Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(trail[0].step, 6U);
  EXPECT_EQ(trail[0].address, kData);
  EXPECT_EQ(trail[1].step, 4U);
  EXPECT_EQ(trail[1].address, kData + 0x10);
  EXPECT_EQ(trail[2].step, 1U);
  EXPECT_EQ(trail[3].value.value, 7U);
}

TEST_F(ValueTrailTest, FollowsTheOnlyInputOfAComputation) {
  p.run({0xb8, 0x05, 0x00, 0x00, 0x00});  // mov $5, %eax
  p.run({0x48, 0x83, 0xc0, 0x03});        // add $3, %rax
  p.regs[cpu::kRax] = cpu::known(8);
  const auto trail = of_register(cpu::kRax);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(trail[0].value, cpu::known(8));
}

TEST_F(ValueTrailTest, EndsWhereSeveralValuesMeet) {
  p.run({0x48, 0x01, 0xd8});  // add %rbx, %rax
  p.regs[cpu::kRax] = cpu::known(8);
  p.regs[cpu::kRbx] = cpu::known(6);
  const auto trail = of_register(cpu::kRax);
  ASSERT_EQ(kinds(trail), std::vector{Kind::kSeveral});
  EXPECT_EQ(trail[0].inputs, (std::vector{cpu::known(2), cpu::known(6)}));
}

TEST_F(ValueTrailTest, EndsAtAStoreThatMayHaveHitThePlace) {
  p.run(rdi_is_data);
  p.run({0xc7, 0x07, 0x07, 0x00, 0x00, 0x00});  // movl $7, (%rdi)
  p.run({0x48, 0x89, 0x32});                    // mov %rsi, (%rdx)
  p.memory[kData] = 7;
  const auto trail = of_data(4);
  ASSERT_EQ(kinds(trail), std::vector{Kind::kMayBeStored});
  EXPECT_EQ(trail[0].step, 2U);
}

TEST_F(ValueTrailTest, PassesAStoreOfOtherBytes) {
  p.run(rdi_is_data);
  p.run({0xc7, 0x07, 0x07, 0x00, 0x00, 0x00});  // movl $7, (%rdi)
  p.run({0x40, 0x88, 0x32});                    // mov %sil, (%rdx)
  p.memory[kData] = 7;
  p.regs[cpu::kRsi] = cpu::known(0x99);
  EXPECT_EQ(kinds(of_data(4)), (std::vector{Kind::kStored, Kind::kConstant}));
}

TEST_F(ValueTrailTest, EndsAtSystemCalls) {
  p.run({0x31, 0xc0});                                // xor %eax, %eax: read
  p.run({0x48, 0xc7, 0xc6, 0x00, 0x00, 0x60, 0x00});  // mov $kData, %rsi
  p.run({0x0f, 0x05});
  p.regs[cpu::kRdx] = cpu::known(4);
  EXPECT_EQ(kinds(of_register(cpu::kRax)), std::vector{Kind::kCallResult});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kKernel});
}

TEST_F(ValueTrailTest, EndsAtACallThatIsNotKnown) {
  p.run({0x0f, 0x05});
  EXPECT_EQ(kinds(of_register(cpu::kRax)), std::vector{Kind::kBeginning});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kBeginning});
}

TEST_F(ValueTrailTest, EndsInMemoryThatOthersWrite) {
  p.data_kind = PageKind::kUnknown;
  p.run(rdi_is_data);
  p.run({0xc7, 0x07, 0x07, 0x00, 0x00, 0x00});  // movl $7, (%rdi)
  EXPECT_EQ(kinds(of_data(4)), std::vector{Kind::kOthers});
}

TEST_F(ValueTrailTest, EndsAtSignals) {
  p.run({0x90});
  p.run({0x90});
  p.window.events.push_back({1, EventKind::kSignal, p.window.steps[1].pc});
  EXPECT_EQ(kinds(of_register(cpu::kRax)), std::vector{Kind::kSignal});
}

TEST_F(ValueTrailTest, EndsWhereTheTraceBegins) {
  p.run({0x90});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kBeginning});
  EXPECT_EQ(kinds(of_register(cpu::kRbx)), std::vector{Kind::kBeginning});
}

}  // namespace
}  // namespace backtrail::decoder::values
