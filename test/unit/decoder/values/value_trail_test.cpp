// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_trail.hpp"

#include <algorithm>
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
  ValueHistory history() { return p.history(3); }
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

TEST_F(ValueTrailTest, BitsThatAnExtensionLeavesAloneAreNotFromIt) {
  p.run(rdi_is_data);
  p.run({0x48, 0xb8, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11});  // movabs $..., %rax
  p.run({0xb0, 0x05});                                                  // mov $5, %al
  p.run({0x66, 0x98});                                                  // cbtw
  p.run({0x48, 0x89, 0x07});                                            // mov %rax, (%rdi)
  p.memory[kData] = 0x1122334455660005;
  p.regs[cpu::kRdi] = cpu::known(kData);
  ValueHistory values = p.history(100);
  const auto upper = trail_of_memory(values, p.window.steps.size(), TraceeAddr{kData} + 4, 4);
  ASSERT_EQ(kinds(upper), (std::vector{Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(upper[1].step, 1U);
  EXPECT_EQ(upper[1].value.value, 0x11223344U);
  EXPECT_EQ(upper[1].bits, 32U);
  const auto second = trail_of_memory(values, p.window.steps.size(), TraceeAddr{kData} + 1, 1);
  ASSERT_EQ(kinds(second), (std::vector{Kind::kStored, Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(second[1].step, 3U);
  EXPECT_EQ(second[2].value.value, 5U);
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
  EXPECT_EQ(trail[0].inputs, (std::vector{TrailPart::Input{cpu::known(2), 64},
                                          TrailPart::Input{cpu::known(6), 64}}));
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
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});  // mov $7, %ebx
  p.run({0x0f, 0x05});
  p.run({0x90});
  for (const auto& trail : {of_register(cpu::kRbx), of_data()}) {
    ASSERT_EQ(kinds(trail), std::vector{Kind::kUnknownEffects});
    EXPECT_EQ(trail[0].step, 1U);
  }
}

TEST_F(ValueTrailTest, EndsAtAnInstructionThatMayHaveChangedAnything) {
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});  // mov $7, %ebx
  p.run({0xcd, 0x80});                    // int $0x80
  EXPECT_EQ(kinds(of_register(cpu::kRbx)), std::vector{Kind::kUnknownEffects});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kUnknownEffects});
}

TEST_F(ValueTrailTest, EndsAtGaps) {
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});  // mov $7, %ebx
  p.run({0x0f, 0x05});
  p.run({0x90});
  p.window.events.push_back({2, EventKind::kGap, {}});
  EXPECT_EQ(kinds(of_register(cpu::kRbx)), std::vector{Kind::kBeginning});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kBeginning});
}

TEST_F(ValueTrailTest, EndsAtACallOfWhichTheBufferIsNotKnown) {
  p.run({0x31, 0xc0});  // xor %eax, %eax: read
  p.run({0x0f, 0x05});
  p.run({0x90});
  EXPECT_EQ(kinds(of_data()), std::vector{Kind::kKernel});
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

TEST_F(ValueTrailTest, TheReturnFromAHandlerSetsEveryRegister) {
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});  // mov $7, %ebx
  p.run({0xb8, 0x0f, 0x00, 0x00, 0x00});  // mov $15, %eax
  p.run({0x0f, 0x05});                    // rt_sigreturn
  p.run({0x90});
  p.window.steps[2].next = p.window.end_pc;
  p.window.steps.pop_back();
  p.regs[cpu::kRbx] = cpu::known(9);
  const auto trail = of_register(cpu::kRbx);
  ASSERT_EQ(kinds(trail), std::vector{Kind::kHandlerReturn});
  EXPECT_EQ(trail[0].value, cpu::known(9));
  EXPECT_EQ(kinds(of_register(cpu::kRax)), std::vector{Kind::kHandlerReturn});
}

TEST_F(ValueTrailTest, AStoreOfOnePartSaysWhichOne) {
  p.run(rdi_is_data);
  p.run({0xc6, 0x47, 0x01, 0x07});  // movb $7, 1(%rdi)
  p.memory[kData] = 0x11220733;
  const auto trail = of_data(4);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(trail[0].address, kData + 1);
  EXPECT_EQ(trail[0].bits, 8U);
  EXPECT_EQ(trail[0].value.value, 7U);
  EXPECT_TRUE(trail[0].is_partial);
  EXPECT_EQ(trail[1].value.value, 7U);
}

TEST_F(ValueTrailTest, OfAWiderStoreThePartThatWasAskedForIsFollowed) {
  p.run(rdi_is_data);
  // movabs $0x8877665544332211, %rax
  p.run({0x48, 0xb8, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88});
  p.run({0x48, 0x89, 0x07});  // mov %rax, (%rdi)
  p.memory[kData] = 0x8877665544332211;
  ValueHistory again = history();
  const auto part = trail_of_memory(again, p.window.steps.size(), TraceeAddr{kData + 2}, 2);
  ASSERT_EQ(kinds(part), (std::vector{Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(part[0].address, kData + 2);
  EXPECT_EQ(part[0].value, (Known{0x4433, 0xffff}));
  EXPECT_FALSE(part[0].is_partial);
  EXPECT_EQ(part[1].value, (Known{0x4433, 0xffff}));
  ValueHistory begins_before = history();
  const auto end = trail_of_memory(begins_before, p.window.steps.size(), TraceeAddr{kData + 6}, 4);
  ASSERT_EQ(kinds(end), (std::vector{Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(end[0].address, kData + 6);
  EXPECT_EQ(end[0].value, (Known{0x8877, 0xffff}));
  EXPECT_TRUE(end[0].is_partial);
  EXPECT_EQ(end[1].value, (Known{0x8877, 0xffff}));
}

TEST_F(ValueTrailTest, AComputationThatIsStoredHasTheStoredValue) {
  p.run(rdi_is_data);
  p.run({0xc7, 0x07, 0x05, 0x00, 0x00, 0x00});  // movl $5, (%rdi)
  p.run({0x83, 0x07, 0x03});                    // addl $3, (%rdi)
  p.run({0x8b, 0x0f});                          // mov (%rdi), %ecx
  p.memory[kData] = 8;
  p.regs[cpu::kRcx] = cpu::known(8);
  p.regs[cpu::kRdi] = cpu::known(kData);
  for (const auto& trail : {of_data(4), of_register(cpu::kRcx)}) {
    const auto made = std::ranges::find(trail, Kind::kComputed, &TrailPart::kind);
    const auto adds = std::ranges::find_if(trail, [](const TrailPart& part) {
      return part.kind == Kind::kComputed && part.step == 2;
    });
    ASSERT_NE(made, trail.end());
    ASSERT_NE(adds, trail.end());
    EXPECT_EQ(adds->value, (Known{8, 0xffffffff}));
  }
}

TEST_F(ValueTrailTest, AfterAShiftTheWholeInputIsFollowed) {
  p.run(rdi_is_data);
  // movabs $0x700000000, %rax
  p.run({0x48, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00});
  p.run({0x48, 0xc1, 0xe8, 0x20});  // shr $32, %rax
  p.run({0x89, 0x07});              // mov %eax, (%rdi)
  p.memory[kData] = 7;
  p.regs[cpu::kRdi] = cpu::known(kData);
  const auto trail = of_data(4);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kStored, Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(trail[1].value, (Known{7, 0xffffffff}));
  ASSERT_EQ(trail[1].inputs.size(), 2U);
  EXPECT_EQ(trail[1].inputs[0], (TrailPart::Input{cpu::known(0x700000000), 64}));
  EXPECT_EQ(trail[2].value, cpu::known(0x700000000));
}

/// Its parts are copies, but not of whole bytes.
TEST_F(ValueTrailTest, ARotationIsAComputation) {
  p.run({0xb8, 0x21, 0x00, 0x00, 0x00});  // mov $0x21, %eax
  p.run({0xc1, 0xc0, 0x04});              // rol $4, %eax
  p.run({0x88, 0xc3});                    // mov %al, %bl
  p.run({0x0f, 0xb6, 0xcb});              // movzbl %bl, %ecx
  p.regs[cpu::kRcx] = cpu::known(0x10);
  p.regs[cpu::kRax] = cpu::known(0x210);
  const auto trail = of_register(cpu::kRcx);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kComputed, Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(trail[1].value, (Known{0x10, 0xff}));
  EXPECT_EQ(trail[1].inputs, (std::vector{TrailPart::Input{Known{0x21, 0xffffffff}, 32}}));
}

TEST_F(ValueTrailTest, CopiesOfASignAreMadeFromTheWholeNumber) {
  p.run({0xb8, 0x21, 0x00, 0x00, 0x00});  // mov $0x21, %eax
  p.run({0x0f, 0xbe, 0xd8});              // movsbl %al, %ebx
  p.run({0x0f, 0xb6, 0xcf});              // movzbl %bh, %ecx
  p.regs[cpu::kRcx] = cpu::known(0);
  p.regs[cpu::kRax] = cpu::known(0x21);
  const auto trail = of_register(cpu::kRcx);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kComputed, Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(trail[1].inputs, (std::vector{TrailPart::Input{Known{0x21, 0xff}, 8}}));
}

TEST_F(ValueTrailTest, InputsAreThoseOfTheInstruction) {
  p.run({0xb9, 0x03, 0x01, 0x00, 0x00});  // mov $0x103, %ecx
  p.run({0x48, 0x8d, 0x44, 0x8b, 0x08});  // lea 8(%rbx, %rcx, 4), %rax
  p.regs[cpu::kRax] = cpu::known(0x514);
  p.regs[cpu::kRbx] = cpu::known(0x100);
  p.regs[cpu::kRcx] = cpu::known(0x103);
  const auto sum = of_register(cpu::kRax);
  ASSERT_EQ(kinds(sum), std::vector{Kind::kSeveral});
  EXPECT_EQ(sum[0].inputs.size(), 3U);
  EXPECT_TRUE(std::ranges::count(sum[0].inputs, TrailPart::Input{cpu::known(0x100), 64}));
  EXPECT_TRUE(std::ranges::count(sum[0].inputs, TrailPart::Input{cpu::known(8), 64}));
  p.run({0x0f, 0x44, 0xc3});  // cmove %ebx, %eax
  const auto chosen = of_register(cpu::kRax);
  ASSERT_EQ(kinds(chosen), std::vector{Kind::kSeveral});
  EXPECT_EQ(chosen[0].inputs.size(), 2U);
  p.run({0xd3, 0xe3});  // shl %cl, %ebx
  p.regs[cpu::kRbx] = {};
  const auto shifted = of_register(cpu::kRbx);
  ASSERT_EQ(kinds(shifted), std::vector{Kind::kSeveral});
  EXPECT_EQ(shifted[0].inputs[1], (TrailPart::Input{Known{3, 0xff}, 8}));
}

TEST_F(ValueTrailTest, ACopyOfAPartIsFollowedInItsPlace) {
  p.run({0xb8, 0x34, 0x12, 0x00, 0x00});  // mov $0x1234, %eax
  p.run({0x88, 0xe3});                    // mov %ah, %bl
  p.run({0x0f, 0xb6, 0xcb});              // movzbl %bl, %ecx
  p.regs[cpu::kRcx] = cpu::known(0x12);
  const auto trail = of_register(cpu::kRcx);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kComputed, Kind::kConstant}));
  EXPECT_EQ(trail[0].inputs, (std::vector{TrailPart::Input{Known{0x12, 0xff}, 8}}));
  EXPECT_EQ(trail[1].value, (Known{0x12, 0xff}));
}

TEST_F(ValueTrailTest, AStringInstructionAtTheEndReachesNoFurtherThanItsRegisters) {
  p.run(rdi_is_data);
  p.run({0xc7, 0x87, 0x00, 0x01, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00});  // movl $7, 0x100(%rdi)
  p.code.insert(p.code.end(), {0xf3, 0xaa});                            // rep stosb
  p.memory[kData + 0x100] = 7;
  p.regs[cpu::kRdi] = cpu::known(kData + 0x10);
  p.regs[cpu::kFlagsSlot] = cpu::known(0);
  const auto kinds_at = [this](std::uint64_t offset) {
    ValueHistory again = history();
    return kinds(trail_of_memory(again, p.window.steps.size(), TraceeAddr{kData + offset}, 4));
  };
  EXPECT_EQ(kinds_at(0x100), (std::vector{Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(kinds_at(0x10), std::vector{Kind::kHalfDone});
  p.regs[cpu::kFlagsSlot] = {};
  EXPECT_EQ(kinds_at(0x100), std::vector{Kind::kHalfDone}) << "the direction is unknown";
}

TEST_F(ValueTrailTest, AStringInstructionAtTheEndMayBeHalfDone) {
  p.run(rdi_is_data);
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});        // mov $7, %ebx
  p.run({0xc7, 0x07, 0x07, 0x00, 0x00, 0x00});  // movl $7, (%rdi)
  p.code.insert(p.code.end(), {0xf3, 0xaa});    // rep stosb
  p.memory[kData] = 7;
  p.regs[cpu::kRdi] = cpu::known(kData + 0x10);
  EXPECT_EQ(kinds(of_register(cpu::kRdi)), std::vector{Kind::kHalfDone});
  EXPECT_EQ(kinds(of_register(cpu::kRcx)), std::vector{Kind::kHalfDone});
  EXPECT_EQ(kinds(of_register(cpu::kRbx)), std::vector{Kind::kConstant});
  EXPECT_EQ(kinds(of_data(4)), std::vector{Kind::kHalfDone});
}

/// Between two windows no instruction is half done.
TEST_F(ValueTrailTest, AStringInstructionThatRanIsWhole) {
  p.run(rdi_is_data);
  p.run({0xb9, 0x04, 0x00, 0x00, 0x00});  // mov $4, %ecx
  p.run({0xb8, 0x07, 0x00, 0x00, 0x00});  // mov $7, %eax
  p.run({0xf3, 0xaa});                    // rep stosb
  p.run({0x90});
  p.run({0x90});
  p.memory[kData] = 0x07070707;
  p.memory[kData + 8] = 5;
  p.regs[cpu::kFlagsSlot] = cpu::known(0);
  p.regs[cpu::kRdi] = cpu::known(kData + 4);
  p.regs[cpu::kRcx] = cpu::known(0);
  const auto trail = of_data(4);
  ASSERT_EQ(kinds(trail), std::vector{Kind::kMayBeStored});
  EXPECT_EQ(trail[0].step, 3U);
  // A window ends before the instruction.
  ValueHistory values = history();
  EXPECT_EQ(kinds(trail_of_memory(values, 3, TraceeAddr{kData + 8}, 8)),
            std::vector{Kind::kBeginning});
}

TEST_F(ValueTrailTest, ARegisterThatIsClearedIsAConstant) {
  for (const std::uint8_t code : {std::uint8_t{0x31}, std::uint8_t{0x29}}) {
    p.run({0xb8, 0x05, 0x00, 0x00, 0x00});  // mov $5, %eax
    p.run({code, 0xc0});                    // xor or sub %eax, %eax
    p.regs[cpu::kRax] = cpu::known(0);
    const auto trail = of_register(cpu::kRax);
    ASSERT_EQ(kinds(trail), std::vector{Kind::kConstant});
    EXPECT_EQ(trail[0].value, cpu::known(0));
  }
}

TEST_F(ValueTrailTest, OfTwoDefinitionsTheLastOneCounts) {
  p.run({0x48, 0xc7, 0xc4, 0x00, 0x01, 0xfe, 0x7f});        // mov $kStack + 0x100, %rsp
  p.run({0x48, 0xc7, 0x04, 0x24, 0x00, 0x02, 0xfe, 0x7f});  // movq $kStack + 0x200, (%rsp)
  p.run({0x5c});                                            // pop %rsp
  p.memory[kStack + 0x100] = kStack + 0x200;
  p.regs[cpu::kRsp] = cpu::known(kStack + 0x200);
  const auto trail = of_register(cpu::kRsp);
  ASSERT_EQ(kinds(trail), (std::vector{Kind::kLoaded, Kind::kStored, Kind::kConstant}));
  EXPECT_EQ(trail[0].address, kStack + 0x100);
}

}  // namespace
}  // namespace backtrail::decoder::values
