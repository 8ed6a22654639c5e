// SPDX-License-Identifier: Apache-2.0
// Tests what must stay unknown of registers and frames across calls: saved registers, the calling
// convention, and pairs of calls and returns.

#include <vector>

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

/// A call whose callee changes rbx and returns to `next`.
struct WithCall : Program {
  WithCall(TraceeAddr next, FrameLinks links) {
    Program& p = *this;
    p.run({0xe8, 0, 0, 0, 0});                          // call the next instruction
    p.run({0x48, 0xc7, 0xc3, 0x03, 0x00, 0x00, 0x00});  // mov $3, %rbx
    p.run({0x48, 0x8b, 0x18});                          // mov (%rax), %rbx
    p.run({0xc3});
    p.window.steps.back().next = next;
    p.window.end_pc = next;
    p.window.links = links;
    p.regs[cpu::kRbx] = cpu::known(9);
  }
};

TEST(ValuesRules, SavedRegistersAreNotTakenToBeIntact) {
  WithCall strict{TraceeAddr{kCode + 5}, FrameLinks::kNone};
  EXPECT_EQ(strict.solve().reg(0, cpu::kRbx).mask, 0U);
}

TEST(ValuesRules, TheConventionHoldsForExactPairsOnly) {
  WithCall exact{TraceeAddr{kCode + 5}, FrameLinks::kConvention};
  EXPECT_EQ(exact.solve().reg(0, cpu::kRbx), cpu::known(9));
  WithCall smashed{TraceeAddr{kCode + 16}, FrameLinks::kConvention};
  EXPECT_EQ(smashed.solve().reg(0, cpu::kRbx).mask, 0U);
  WithCall signalled{TraceeAddr{kCode + 5}, FrameLinks::kConvention};
  signalled.window.events.push_back({2, EventKind::kSignal, signalled.window.steps[2].pc});
  EXPECT_EQ(signalled.solve().reg(0, cpu::kRbx).mask, 0U);
}

TEST(ValuesRules, AStackFromElsewhereEndsThePairs) {
  Program p;
  p.run({0xe8, 0, 0, 0, 0});
  p.run({0x48, 0x8b, 0x20});  // mov (%rax), %rsp
  p.run({0x48, 0x8b, 0x18});  // mov (%rax), %rbx
  p.run({0xc3});
  p.window.steps.back().next = p.window.end_pc = TraceeAddr{kCode + 5};
  p.window.links = FrameLinks::kConvention;
  p.regs[cpu::kRbx] = cpu::known(9);
  EXPECT_EQ(p.solve().reg(0, cpu::kRbx).mask, 0U);
}

TEST(ValuesRules, AnEnterAtTheEndMayHavePushedSomething) {
  Program p;
  p.run({0x48, 0x89, 0xc4});                              // mov %rax, %rsp
  p.code.insert(p.code.end(), {0xc8, 0x20, 0x00, 0x05});  // enter $32, $5
  p.regs[cpu::kRsp] = cpu::known(kStack + 0x100);
  p.memory[kStack + 0xf8] = 7;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.memory(0, TraceeAddr{kStack + 0xf8}).mask, 0U);
}

/// A function saves %rbp somewhere, `between` runs, and it restores %rbp to a known value. Where
/// the stack was is not known.
Known saved_register(Program& p, const std::vector<Bytes>& between) {
  p.run({0x55});  // push %rbp
  for (const Bytes& insn : between) p.run(insn);
  p.run({0x5d});              // pop %rbp
  p.run({0x4c, 0x89, 0xc4});  // mov %r8, %rsp
  p.regs[cpu::kRbp] = cpu::known(0x7ffe0123456789ab);
  return p.solve().reg(0, cpu::kRbp);
}

TEST(ValuesRules, ARestoredRegisterIsWhatWasSaved) {
  Program p;
  // push $1; sub $8, %rsp; add $16, %rsp
  const Known saved =
      saved_register(p, {{0x6a, 0x01}, {0x48, 0x83, 0xec, 0x08}, {0x48, 0x83, 0xc4, 0x10}});
  EXPECT_EQ(saved, cpu::known(0x7ffe0123456789ab));
}

TEST(ValuesRules, AStoreThatMayHaveHitASavedRegisterHidesIt) {
  Program p;
  EXPECT_EQ(saved_register(p, {store_to_rdx}).mask, 0U);
  Program same_byte;
  same_byte.regs[cpu::kRsi] = cpu::known(0x45);
  // mov %sil, (%rdx)
  EXPECT_EQ(saved_register(same_byte, {{0x40, 0x88, 0x32}}).mask, 0xffffffff00ffffffU);
}

TEST(ValuesRules, AStoreOfOtherBytesCannotHaveHitASavedRegister) {
  Program p;
  p.regs[cpu::kRsi] = cpu::known(0x1111111111111111);
  EXPECT_TRUE(saved_register(p, {store_to_rdx}).all());
}

TEST(ValuesRules, AStoreAtAnotherAlignmentCannotHaveHitASavedRegister) {
  const Bytes align_stack{0x48, 0x83, 0xe4, 0xc0};  // and $-64, %rsp
  const Bytes move_to_rdx{0x48, 0x89, 0xca};        // mov %rcx, %rdx
  for (const unsigned place : {0x20U, 0x38U}) {
    Program p;
    p.run(align_stack);
    p.run(move_to_rdx);
    p.regs[cpu::kRdx] = cpu::known(kData + place);
    p.memory[kData + place] = 0x7ffe0123456789ab;
    // The register was saved 8 bytes below a multiple of 64.
    EXPECT_EQ(saved_register(p, {store_to_rdx}).all(), place == 0x20) << place;
  }
}

TEST(ValuesRules, AStoreToTheSlotOfASavedRegisterCounts) {
  Program p;
  p.regs[cpu::kRsi] = cpu::known(0x22);
  // mov %sil, (%rsp): the byte that was saved is another one.
  EXPECT_EQ(saved_register(p, {{0x40, 0x88, 0x34, 0x24}}).mask, 0U);
}

TEST(ValuesRules, AStackThatMayBeSharedHasNoLinks) {
  Program p;
  p.all_private = false;
  EXPECT_EQ(saved_register(p, {}).mask, 0U);
}

TEST(ValuesRules, ASystemCallMayHaveWrittenASavedRegister) {
  const Bytes is_read{0xb8, 0x00, 0x00, 0x00, 0x00};     // mov $0, %eax
  const Bytes of_nothing{0xba, 0x00, 0x00, 0x00, 0x00};  // mov $0, %edx
  Program somewhere;
  somewhere.regs[cpu::kRax] = cpu::known(8);
  EXPECT_EQ(saved_register(somewhere, {is_read, system_call}).mask, 0U);
  EXPECT_EQ(somewhere.solve().begin(), 0U);
  Program nowhere;
  EXPECT_TRUE(saved_register(nowhere, {is_read, of_nothing, system_call}).all());
}

/// Returns what is known of a register that was saved before a system call without arguments.
/// A system call whose effects are not known would hide everything.
Known saved_before(std::uint8_t number) {
  Program p;
  p.brk_heap = {TraceeAddr{0x700000}, TraceeAddr{0x702000}};
  const Known saved =
      saved_register(p, {{0xb8, number, 0x00, 0x00, 0x00},            // mov $number, %eax
                         {0x48, 0xc7, 0xc7, 0x00, 0x00, 0x70, 0x00},  // mov $0x700000, %rdi
                         {0xbe, 0x00, 0x10, 0x00, 0x00},              // mov $0x1000, %esi
                         system_call});
  EXPECT_EQ(p.solve().begin(), 0U);
  return saved;
}

TEST(ValuesRules, ASystemCallThatClearsMemoryHidesASavedRegister) {
  constexpr std::uint8_t kGetPid = 39;
  constexpr std::uint8_t kMadvise = 28;
  constexpr std::uint8_t kBrk = 12;
  EXPECT_TRUE(saved_before(kGetPid).all());
  EXPECT_EQ(saved_before(kMadvise).mask, 0U);
  EXPECT_EQ(saved_before(kBrk).mask, 0U);
}

TEST(ValuesRules, BeforeAMappingWasRemovedTheStackMayHaveBeenShared) {
  Program p;
  p.run({0x55});                                      // push %rbp
  p.run({0x5d});                                      // pop %rbp
  p.run({0xb8, 0x0b, 0x00, 0x00, 0x00});              // mov $11, %eax: munmap
  p.run({0x48, 0xc7, 0xc7, 0x00, 0x00, 0x70, 0x00});  // mov $0x700000, %rdi
  p.run({0xbe, 0x00, 0x10, 0x00, 0x00});              // mov $0x1000, %esi
  p.run(system_call);
  p.run({0x48, 0x89, 0xc8});  // mov %rcx, %rax
  p.run({0x4c, 0x89, 0xc4});  // mov %r8, %rsp
  p.regs[cpu::kRbp] = cpu::known(0x7ffe0123456789ab);
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.reg(2, cpu::kRbp).all());
  EXPECT_EQ(solved.reg(0, cpu::kRbp).mask, 0U);
}

}  // namespace
}  // namespace backtrail::decoder::values
