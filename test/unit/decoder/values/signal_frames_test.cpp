// SPDX-License-Identifier: Apache-2.0
// Tests what a signal's frame tells: the kernel saves registers there, and loads them again.

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

constexpr std::uint64_t kFrame = kStack + 0x100;  // the handler's stack pointer
constexpr std::uint64_t kContext = kFrame + 8;    // struct ucontext
constexpr std::uint64_t kSavedRbx = kContext + 128;
constexpr std::uint64_t kSavedRax = kContext + 144;
constexpr std::uint64_t kSavedR11 = kContext + 64;

const Bytes nop{0x90};
const Bytes mov_15_eax{0xb8, 0x0f, 0x00, 0x00, 0x00};

/// Runs rt_sigreturn, which goes to the next instruction but one.
void return_from_handler(Program& p) {
  p.run(mov_15_eax);
  p.run(system_call);
  p.run(nop);
  p.window.steps[p.window.steps.size() - 2].next = p.window.end_pc;
  p.window.steps.pop_back();
}

TEST(SignalFrames, TheReturnLoadsTheRegisters) {
  Program p;
  p.run({0x48, 0xc7, 0xc4, 0x08, 0x01, 0xfe, 0x7f});  // mov $kContext, %rsp
  return_from_handler(p);
  p.regs[cpu::kRbx] = cpu::known(0x1234);
  p.memory[kSavedRbx] = 0x1234;
  p.memory[kSavedR11] = 0x5678;
  p.memory[kData] = 9;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.begin(), 0U);
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.reg(3, cpu::kRbx), cpu::known(0x1234));
  EXPECT_EQ(solved.reg(2, cpu::kRbx).mask, 0U);
  // Other memory than the frame is left alone.
  EXPECT_EQ(solved.memory(2, TraceeAddr{kData}), cpu::known(9));
  EXPECT_EQ(solved.memory(2, TraceeAddr{kSavedRbx}), cpu::known(0x1234));
}

TEST(SignalFrames, ARecorderMayHaveChangedTheFrame) {
  Program p;
  p.run({0x48, 0xc7, 0xc4, 0x08, 0x01, 0xfe, 0x7f});  // mov $kContext, %rsp
  return_from_handler(p);
  const SolvedWindow solved = p.solve();
  for (const std::uint64_t offset : {56U, 64U, 168U, 176U, 296U}) {
    EXPECT_EQ(solved.memory(2, TraceeAddr{kContext + offset}).mask, 0U) << offset;
    EXPECT_TRUE(solved.memory(3, TraceeAddr{kContext + offset}).all()) << offset;
  }
  EXPECT_EQ(solved.reg(3, cpu::kR11).mask, 0U);
}

TEST(SignalFrames, TheKernelSavesTheRegisters) {
  Program p;
  p.run({0x48, 0xc7, 0xc3, 0x07, 0x00, 0x00, 0x00});  // mov $7, %rbx
  p.run({0x48, 0xc7, 0xc0, 0x08, 0x00, 0x00, 0x00});  // mov $8, %rax
  p.run({0x48, 0xc7, 0xc4, 0x00, 0x04, 0xfe, 0x7f});  // mov $kStack + 0x400, %rsp
  p.window.events.push_back({3, EventKind::kSignal, p.window.end_pc});
  p.run({0x48, 0x8b, 0x9c, 0x24, 0x98, 0x00, 0x00, 0x00});  // mov 0x98(%rsp), %rbx: saved rax
  p.regs[cpu::kRsp] = cpu::known(kFrame);
  p.regs[cpu::kRbx] = cpu::known(8);
  p.memory[kSavedRbx] = 7;
  p.memory[kSavedRax] = 8;
  p.memory[kContext + 160] = kStack + 0x400;
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.memory(3, TraceeAddr{kSavedRbx}), cpu::known(7));
  EXPECT_EQ(solved.memory(2, TraceeAddr{kSavedRbx}).mask, 0U);
}

/// A register before the signal is known from its frame.
TEST(SignalFrames, SavedRegistersTellWhatTheyWere) {
  Program p;
  p.run(nop);
  p.window.events.push_back({1, EventKind::kSignal, p.window.end_pc});
  p.run({0x48, 0xc7, 0xc3, 0x00, 0x00, 0x00, 0x00});  // mov $0, %rbx
  p.regs[cpu::kRsp] = cpu::known(kFrame);
  p.memory[kSavedRbx] = 0x77;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kRbx), cpu::known(0x77));
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(0x77));
}

TEST(SignalFrames, TheResultOfAnInterruptedCallIsNotWhatIsSaved) {
  Program p;
  p.run({0xb8, 0x22, 0x00, 0x00, 0x00});  // mov $34, %eax: pause
  p.run(system_call);
  p.window.events.push_back({2, EventKind::kSignal, p.window.end_pc});
  p.run(nop);
  p.regs[cpu::kRsp] = cpu::known(kFrame);
  p.memory[kSavedRax] = 0x77;
  p.memory[kSavedRbx] = 0x78;
  p.window.facts.push_back({2, cpu::kRax, 0x1234});
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(0x78));
}

TEST(SignalFrames, RegistersThatWereRecordedBeforeASignalAreThoseOfTheInterruptedCode) {
  Program p;
  p.run(nop);
  p.window.events.push_back({1, EventKind::kSignal, p.window.end_pc});
  p.run({0xb8, 0x00, 0x00, 0x00, 0x00});  // mov $0, %eax
  constexpr std::uint64_t kDown = std::uint64_t{1} << cpu::kDf;
  p.window.facts = {{1, arch::kFlagsKind, kDown, 0},
                    {1, cpu::kRax, 0x77, 0},
                    {1, cpu::kRsp, kStack + 0x400, 0},
                    {1, cpu::kRax, 0x78},
                    {1, cpu::kRsp, kFrame}};
  p.memory[kSavedRax] = 0x77;
  p.memory[kContext + 160] = kStack + 0x400;
  p.memory[kContext + 168] = p.window.events[0].interrupted.value();
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.reg(0, cpu::kRax), cpu::known(0x77));
  EXPECT_EQ(solved.reg(0, cpu::kRsp), cpu::known(kStack + 0x400));
  EXPECT_EQ(solved.reg(0, cpu::kFlagsSlot).value & kDown, kDown);
  EXPECT_EQ(solved.reg(1, cpu::kRax), cpu::known(0x78));
  EXPECT_EQ(solved.reg(1, cpu::kRsp), cpu::known(kFrame));
}

TEST(SignalFrames, ARecordedSignalsFrameHasThePcUntilTheHandlerReturns) {
  for (const bool is_recorded : {false, true}) {
    Program p;
    p.run(nop);
    const TraceeAddr interrupted = p.window.end_pc;
    p.window.events.push_back({1, EventKind::kSignal, interrupted});
    p.run(nop);
    if (is_recorded) p.window.facts.push_back({1, cpu::kR11, 0x55, 0});
    p.window.facts.push_back({1, cpu::kRsp, kFrame});
    p.run({0x48, 0xc7, 0xc4, 0x08, 0x01, 0xfe, 0x7f});  // mov $kContext, %rsp
    return_from_handler(p);
    const SolvedWindow solved = p.solve();
    EXPECT_TRUE(solved.consistent());
    EXPECT_EQ(solved.memory(2, TraceeAddr{kContext + 168}),
              is_recorded ? cpu::known(interrupted.value()) : Known{});
    EXPECT_EQ(solved.memory(2, TraceeAddr{kSavedR11}), is_recorded ? cpu::known(0x55) : Known{});
  }
}

TEST(SignalFrames, AHandlerBeginsWithoutTheDirectionFlag) {
  Program p;
  p.run(nop);
  p.window.events.push_back({1, EventKind::kSignal, p.window.end_pc});
  p.run(nop);
  const SolvedWindow solved = p.solve();
  constexpr std::uint64_t kDown = std::uint64_t{1} << cpu::kDf;
  EXPECT_EQ(solved.reg(1, cpu::kFlagsSlot).mask & kDown, kDown);
  EXPECT_EQ(solved.reg(1, cpu::kFlagsSlot).value & kDown, 0U);
  EXPECT_EQ(solved.reg(0, cpu::kFlagsSlot).mask & kDown, 0U);
}

/// On another stack the frame does not end below the interrupted code's stack.
TEST(SignalFrames, AFrameIsNoLongerThanTheRegistersNeed) {
  Program p;
  p.window.components = 7;                            // SSE and AVX
  p.run({0x48, 0xc7, 0xc4, 0x00, 0x04, 0xfe, 0x7f});  // mov $kStack + 0x400, %rsp
  p.window.events.push_back({1, EventKind::kSignal, p.window.end_pc});
  p.run(nop);
  p.regs[cpu::kRsp] = cpu::known(kData);
  p.memory[kData + 8 + 160] = kStack + 0x400;  // the saved rsp
  p.memory[kData + 0x700] = 9;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData + 0x700}), cpu::known(9));
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData + 0x400}).mask, 0U);
}

TEST(SignalFrames, TheReturnLeavesTheBasesOfTheSegments) {
  Program p;
  p.run({0x48, 0xc7, 0xc4, 0x08, 0x01, 0xfe, 0x7f});  // mov $kContext, %rsp
  return_from_handler(p);
  p.regs[cpu::kFsBaseSlot] = cpu::known(kData);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kFsBaseSlot), cpu::known(kData));
}

}  // namespace
}  // namespace backtrail::decoder::values
