// SPDX-License-Identifier: Apache-2.0
// Tests what must stay unknown: one test for each rule, with a few bytes of code.

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

const Bytes mov_rax_data{0x48, 0xc7, 0xc0, 0x00, 0x00, 0x60, 0x00};  // mov $kData, %rax
const Bytes load_rcx{0x48, 0x8b, 0x08};                              // mov (%rax), %rcx
const Bytes add_rbx_1{0x48, 0x83, 0xc3, 0x01};

TEST(ValuesRules, RegistersFlowBackThroughReversibleInstructions) {
  Program p;
  p.run(add_rbx_1);
  p.run({0x48, 0xf7, 0xdb});  // neg %rbx
  p.regs[cpu::kRbx] = cpu::known(static_cast<std::uint64_t>(-8));
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kRbx), cpu::known(7));
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(8));
}

/// Returns lane 0 of xmm0 before the instructions, which leave `after` there.
Known lane_before(const std::vector<Bytes>& code, std::uint64_t xmm1, std::uint64_t after) {
  Program p;
  for (const Bytes& bytes : code) p.run(bytes);
  p.regs[cpu::vector_slot(0, 0)] = cpu::known(after);
  p.regs[cpu::vector_slot(1, 0)] = cpu::known(xmm1);
  return p.solve().reg(0, cpu::vector_slot(0, 0));
}

TEST(ValuesRules, VectorsOfIntegersFlowBackThroughAdditions) {
  const Bytes paddb{0x66, 0x0f, 0xfc, 0xc1}, paddd{0x66, 0x0f, 0xfe, 0xc1};  // %xmm1, %xmm0
  const Bytes psubw{0x66, 0x0f, 0xf9, 0xc1};
  EXPECT_EQ(lane_before({paddb}, 0x01ff, 0x0000), cpu::known(0xff01));
  EXPECT_EQ(lane_before({paddd}, 0x1'00000001, 0x2'00000000), cpu::known(0x1'ffffffff));
  EXPECT_EQ(lane_before({psubw}, 0x1'0002, 0xffff), cpu::known(0x1'0001));
}

TEST(ValuesRules, AVectorTimesOddNumbersTellsTheVector) {
  const Bytes pmullw{0x66, 0x0f, 0xd5, 0xc1}, pmulld{0x66, 0x0f, 0x38, 0x40, 0xc1};
  EXPECT_EQ(lane_before({pmullw}, 0x0003'0005'0007'ffff, 0x000c'0019'0031'0002),
            cpu::known(0x0004'0005'0007'fffe));
  EXPECT_EQ(lane_before({pmulld}, 0x5'00000003, 0x19'fffffffd), cpu::known(0x5'ffffffff));
  // An even factor loses the high bits.
  EXPECT_EQ(lane_before({pmulld}, 0x5'00000002, 0x19'00000006).mask, 0xffffffff'00000000);
}

TEST(ValuesRules, AVectorTimesThreeTellsTheVector) {
  Program p;
  p.run({0x66, 0x0f, 0x6f, 0xc8});        // movdqa %xmm0, %xmm1
  p.run({0x66, 0x0f, 0x72, 0xf1, 0x01});  // pslld $1, %xmm1
  p.run({0x66, 0x0f, 0xfe, 0xc8});        // paddd %xmm0, %xmm1
  p.run({0x66, 0x0f, 0xef, 0xc0});        // pxor %xmm0, %xmm0
  p.regs[cpu::vector_slot(1, 0)] = cpu::known(0x15'fffffffd);
  EXPECT_EQ(p.solve().reg(0, cpu::vector_slot(0, 0)), cpu::known(0x7'ffffffff));
}

TEST(ValuesRules, AVectorsShiftLeavesTheOtherBits) {
  const std::uint64_t high = 0xfff0'fff0'fff0'fff0;
  const Bytes psraw{0x66, 0x0f, 0x71, 0xe0, 0x04}, psrlw{0x66, 0x0f, 0x71, 0xd0, 0x04};
  const Bytes psllw{0x66, 0x0f, 0x71, 0xf0, 0x04}, psrad{0x66, 0x0f, 0x72, 0xe0, 0x04};
  EXPECT_EQ(lane_before({psraw}, 0, 0xf923), (Known{0x9230, high}));
  EXPECT_EQ(lane_before({psrlw}, 0, 0x0923), (Known{0x9230, high}));
  EXPECT_EQ(lane_before({psllw}, 0, 0x9230), (Known{0x0923, 0x0fff'0fff'0fff'0fff}));
  EXPECT_EQ(lane_before({psrad}, 0, 0xf8000001), (Known{0x80000010, 0xfffffff0'fffffff0}));
}

TEST(ValuesRules, AndNotLeavesTheParityUnknown) {
  Program p;
  p.run({0xc4, 0xe2, 0xf8, 0xf2, 0xcb});  // andn %rbx, %rax, %rcx
  p.regs[cpu::kRax] = cpu::known(1);
  p.regs[cpu::kRbx] = cpu::known(0xf1);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::kRcx), cpu::known(0xf0));
  const cpu::Known flags = solved.reg(1, cpu::kFlagsSlot);
  for (const unsigned flag : {cpu::kCf, cpu::kZf, cpu::kSf, cpu::kOf}) {
    EXPECT_TRUE(flags.bit_known(flag) && !flags.bit(flag)) << flag;
  }
  EXPECT_FALSE(flags.bit_known(cpu::kPf));
}

TEST(ValuesRules, TheInstructionAtTheEndHasNotRun) {
  Program p;
  p.run(add_rbx_1);
  p.code.insert(p.code.end(), {0x48, 0x83, 0xc3, 0x05});
  p.regs[cpu::kRbx] = cpu::known(10);
  EXPECT_EQ(p.solve().reg(0, cpu::kRbx), cpu::known(9));
}

TEST(ValuesRules, ARepeatedStringInstructionAtTheEndMayBeHalfDone) {
  Program p;
  p.run({0x90});
  p.code.insert(p.code.end(), {0xf3, 0xaa});  // rep stosb
  for (const Slot slot : {cpu::kRdi, cpu::kRcx, cpu::kRbx}) p.regs[slot] = cpu::known(kData);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(kData));
  EXPECT_EQ(solved.reg(0, cpu::kRcx).mask, 0U);
  EXPECT_EQ(solved.reg(0, cpu::kRdi).mask, 0U);
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData}).mask, 0U);
}

/// A program that fills three words at kData and loads from there.
Program filling(const Bytes& rep_stos, std::uint64_t count) {
  Program p;
  p.run(rep_stos);
  p.run(mov_rax_data);
  p.run(load_rcx);
  p.run(store_to_rdx);
  p.regs[cpu::kRdx] = p.regs[cpu::kRsi] = cpu::known(kData);
  p.memory[kData] = kData;
  p.window.facts = {
      {0, cpu::kRdi, kData}, {0, cpu::kRcx, count}, {0, cpu::kRax, 0x0807060504030201}};
  p.regs[cpu::kFlagsSlot] = cpu::known(0);
  return p;
}

TEST(ValuesRules, ARepeatedStoreFillsMemory) {
  Program words = filling({0xf3, 0x48, 0xab}, 3);  // rep stosq
  EXPECT_EQ(words.solve().reg(3, cpu::kRcx), cpu::known(0x0807060504030201));
  EXPECT_EQ(words.solve().memory(1, TraceeAddr{kData}), cpu::known(0x0807060504030201));
  EXPECT_EQ(words.solve().memory(0, TraceeAddr{kData}).mask, 0U);
  Program small = filling({0xf3, 0x66, 0xab}, 3);  // rep stosw
  EXPECT_EQ(small.solve().reg(3, cpu::kRcx), (Known{0x020102010201, 0xffffffffffff}));
  Program bytes = filling({0xf3, 0xaa}, 5);  // rep stosb
  EXPECT_EQ(bytes.solve().memory(1, TraceeAddr{kData}), (Known{0x0101010101, 0xffffffffff}));
  Program none = filling({0xf3, 0xaa}, 0);
  EXPECT_EQ(none.solve().memory(1, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, ARepeatedStoreFillsDownwardsFromItsLastUnit) {
  Program p = filling({0xf3, 0x66, 0xab}, 2);  // rep stosw
  p.regs[cpu::kFlagsSlot] = cpu::known(std::uint64_t{1} << cpu::kDf);
  p.window.facts[0].value = kData + 3;
  EXPECT_EQ(p.solve().memory(1, TraceeAddr{kData}), (Known{0x0201020100, 0xffffffff00}));
}

TEST(ValuesRules, AStoreToAnUnknownAddressHidesWhatFilledMemory) {
  Program p;
  p.run({0xf3, 0x48, 0xab});  // rep stosq
  p.run(store_to_rdx);
  p.run({0x48, 0x89, 0x07});  // mov %rax, (%rdi)
  p.window.facts = {{0, cpu::kRdi, kData}, {0, cpu::kRcx, 2}, {0, cpu::kRax, 5}};
  p.regs[cpu::kFlagsSlot] = cpu::known(0);
  p.memory[kData] = 6;
  p.memory[kData + 0x10] = 5;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData}), cpu::known(5));
  EXPECT_EQ(solved.memory(2, TraceeAddr{kData}), cpu::known(6));
}

TEST(ValuesRules, AStringInstructionAtTheEndReachesNoFurtherThanItsRegisters) {
  Program p;
  p.run({0x48, 0x89, 0xc7});                  // mov %rax, %rdi
  p.code.insert(p.code.end(), {0xf3, 0xaa});  // rep stosb
  p.regs[cpu::kRax] = cpu::known(kData);
  p.regs[cpu::kRdi] = cpu::known(kData + 0x10);
  p.regs[cpu::kFlagsSlot] = cpu::known(0);
  p.memory[kData + 0x100] = 7;
  const auto at = [](const SolvedWindow& solved, std::uint64_t offset) {
    return solved.memory(0, TraceeAddr{kData + offset});
  };
  const SolvedWindow upwards = p.solve();
  EXPECT_EQ(at(upwards, 0x100), cpu::known(7));
  for (const int offset : {-8, 0, 8, 0x10}) {
    EXPECT_EQ(at(upwards, static_cast<std::uint64_t>(offset)).mask, 0U) << offset;
  }
  p.regs[cpu::kFlagsSlot] = {};
  EXPECT_EQ(at(p.solve(), 0x100).mask, 0U) << "the direction is unknown";
}

TEST(ValuesRules, AnInterruptedStringInstructionMayBeHalfDone) {
  Program p;
  p.run({0x90});
  p.run({0x90});
  p.code.insert(p.code.begin() + 1, {0xf3, 0xaa});
  p.window.steps[1].pc = TraceeAddr{kCode + 3};
  p.window.events.push_back({1, EventKind::kSignal, TraceeAddr{kCode + 1}});
  p.regs[cpu::kRcx] = p.regs[cpu::kRbx] = cpu::known(5);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kRbx), cpu::known(5));
  EXPECT_EQ(solved.reg(0, cpu::kRcx).mask, 0U);
}

TEST(ValuesRules, UndefinedFlagsAreUnknown) {
  Program p;
  p.run({0x48, 0xc7, 0xc3, 0x03, 0x00, 0x00, 0x00});  // mov $3, %rbx
  p.run({0x48, 0x83, 0xe3, 0x01});                    // and $1, %rbx
  p.run({0x48, 0xc1, 0xe3, 0x02});                    // shl $2, %rbx
  const SolvedWindow solved = p.solve();
  const Known after_and = solved.reg(2, cpu::kFlagsSlot);
  EXPECT_FALSE(after_and.bit_known(cpu::kAf));
  EXPECT_TRUE(after_and.bit_known(cpu::kCf) && after_and.bit_known(cpu::kZf));
  EXPECT_FALSE(solved.reg(3, cpu::kFlagsSlot).bit_known(cpu::kOf));
}

TEST(ValuesRules, AShiftByAVariableMayLeaveTheFlags) {
  Program p;
  p.run({0x48, 0xc7, 0xc1, 0x00, 0x00, 0x00, 0x00});  // mov $0, %rcx
  p.run({0x48, 0xd3, 0xe3});                          // shl %cl, %rbx
  EXPECT_EQ(p.solve().reg(2, cpu::kFlagsSlot).mask & cpu::kArithmeticFlags, 0U);
}

TEST(ValuesRules, A32BitWriteTellsNothingOfTheOldUpperHalf) {
  Program p;
  p.run({0x83, 0xc3, 0x01});  // add $1, %ebx
  p.regs[cpu::kRbx] = cpu::known(8);
  EXPECT_EQ(p.solve().reg(0, cpu::kRbx), (Known{7, 0xffffffff}));
}

TEST(ValuesRules, A32BitConditionalMoveClearsTheUpperHalfAlways) {
  Program p;
  p.run({0xf9});              // stc
  p.run({0x0f, 0x43, 0xd8});  // cmovae %eax, %ebx
  p.regs[cpu::kRbx] = cpu::known(9);
  EXPECT_EQ(p.solve().reg(0, cpu::kRbx), (Known{9, 0xffffffff}));
}

TEST(ValuesRules, ABitScanOfZeroGivesNothing) {
  Program p;
  p.run({0x31, 0xdb});              // xor %ebx, %ebx
  p.run({0x48, 0x0f, 0xbc, 0xcb});  // bsf %rbx, %rcx
  EXPECT_EQ(p.solve().reg(2, cpu::kRcx).mask, 0U);
}

TEST(ValuesRules, AComparedExchangeWritesOneOrTheOther) {
  Program p;
  p.run(mov_rax_data);
  p.run({0x48, 0x0f, 0xb1, 0x18});  // cmpxchg %rbx, (%rax)
  p.regs[cpu::kRbx] = cpu::known(1);
  p.memory[kData] = 7;
  const SolvedWindow solved = p.solve();
  // Memory was not exchanged, so rbx did not hold 7.
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData}), cpu::known(7));
}

TEST(ValuesRules, LegacySseKeepsTheUpperLanesAndVexClearsThem) {
  Program p;
  p.run({0x66, 0x0f, 0xef, 0xc0});  // pxor %xmm0, %xmm0
  p.run({0xc5, 0xf1, 0xef, 0xc9});  // vpxor %xmm1, %xmm1, %xmm1
  for (unsigned lane = 0; lane < 4; ++lane) {
    p.regs[cpu::vector_slot(0, lane)] = cpu::known(lane < 2 ? 0 : 5);
    p.regs[cpu::vector_slot(1, lane)] = cpu::known(0);
  }
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::vector_slot(0, 2)), cpu::known(5));
  EXPECT_EQ(solved.reg(0, cpu::vector_slot(0, 0)).mask, 0U);
  EXPECT_EQ(solved.reg(0, cpu::vector_slot(1, 2)).mask, 0U);
}

TEST(ValuesRules, ResultsOfFloatingPointAreUnknown) {
  Program p;
  p.run({0x66, 0x0f, 0xef, 0xc0});  // pxor %xmm0, %xmm0
  p.run({0xf2, 0x0f, 0x58, 0xc0});  // addsd %xmm0, %xmm0
  EXPECT_EQ(p.solve().reg(2, cpu::vector_slot(0, 0)).mask, 0U);
}

TEST(ValuesRules, X87StoresUnknownValues) {
  Program p;
  p.run(mov_rax_data);
  p.run({0xdd, 0x18});  // fstpl (%rax)
  p.memory[kData] = 7;
  p.memory[kData + 8] = 8;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData}).mask, 0U);
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData + 8}), cpu::known(8));
}

TEST(ValuesRules, XrstorWritesEveryLane) {
  Program p;
  p.run({0x0f, 0xae, 0x28});  // xrstor (%rax)
  for (Known& known : p.regs) known = cpu::known(kData);
  EXPECT_EQ(p.solve().reg(0, cpu::vector_slot(3, 1)).mask, 0U);
  EXPECT_EQ(p.solve().reg(0, cpu::mask_slot(7)).mask, 0U);
}

TEST(ValuesRules, XsaveMayWriteAllOfItsArea) {
  Program p;
  p.run({0x0f, 0xae, 0x23});  // xsave (%rbx)
  p.regs[cpu::kRbx] = cpu::known(kData);
  p.regs[cpu::kRax] = cpu::known(0xff);
  p.regs[cpu::kRdx] = cpu::known(0);
  EXPECT_EQ(p.solve().memory(0, TraceeAddr{kData + 824}).mask, 0U);
  EXPECT_TRUE(p.solve().memory(0, TraceeAddr{kData + 832}).all());
  p.regs[cpu::kRax] = cpu::known(2);  // SSE alone
  EXPECT_EQ(p.solve().memory(0, TraceeAddr{kData + 568}).mask, 0U);
  EXPECT_TRUE(p.solve().memory(0, TraceeAddr{kData + 576}).all());
  p.regs[cpu::kRax] = {};  // any components
  EXPECT_EQ(p.solve().memory(0, TraceeAddr{kData + 832}).mask, 0U);
}

TEST(ValuesRules, ASignalWritesItsFrameBelowTheRedZone) {
  Program p;
  p.run({0x90});
  p.run({0x48, 0xc7, 0xc4, 0x00, 0x04, 0xfe, 0x7f});  // mov $0x7ffe0400, %rsp: known before
  p.run({0x90});
  p.window.events.push_back({2, EventKind::kSignal, p.window.steps[2].pc});
  p.regs[cpu::kRsp] = cpu::known(kStack + 0x100);
  p.memory[kStack + 0x108 + 104] = 5;               // the saved rdi
  p.memory[kStack + 0x108 + 160] = kStack + 0x400;  // the saved rsp
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.memory(1, TraceeAddr{kStack + 0x400 - 128}).all());
  EXPECT_EQ(solved.memory(1, TraceeAddr{kStack + 0x400 - 136}).mask, 0U);
  EXPECT_EQ(solved.memory(1, TraceeAddr{kStack + 0x100}).mask, 0U);
  EXPECT_TRUE(solved.memory(1, TraceeAddr{kStack + 0xf8}).all());
  EXPECT_EQ(solved.reg(1, cpu::kRdi), cpu::known(5));
  EXPECT_EQ(solved.reg(1, cpu::kFlagsSlot).mask, 0U);
}

TEST(ValuesRules, AHandlersReturnMayHaveChangedMemory) {
  Program p;
  p.run({0xb8, 0x0f, 0x00, 0x00, 0x00});  // mov $15, %eax
  p.run(system_call);                     // rt_sigreturn
  p.run({0x90});
  p.window.steps[1].next = p.window.end_pc;
  p.window.steps.pop_back();
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.begin(), 0U);
  EXPECT_TRUE(solved.memory(2, TraceeAddr{kData}).all());
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, ASegmentsBaseCountsBesideThePc) {
  Program p;
  p.run({0x64, 0x48, 0x8b, 0x0d, 0x00, 0x00, 0x00, 0x00});  // mov %fs:0(%rip), %rcx
  p.run({0x48, 0x31, 0xc9});                                // xor %rcx, %rcx
  p.regs[cpu::kFsBaseSlot] = cpu::known(kData - p.window.steps[1].pc.value());
  p.memory[kData] = 7;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::kRcx), cpu::known(7));
}

TEST(ValuesRules, MemoryThatOthersChangeIsNeverKnown) {
  Program p;
  p.data_kind = PageKind::kUnknown;
  p.run(mov_rax_data);
  p.run({0x48, 0xc7, 0x00, 0x05, 0x00, 0x00, 0x00});  // movq $5, (%rax)
  p.run(load_rcx);
  p.memory[kData] = 5;
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(3, cpu::kRcx).mask, 0U);
  EXPECT_EQ(solved.memory(3, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, BeforeAMappingChangedItsMemoryIsUnknown) {
  Program p;
  p.run({0x48, 0xc7, 0xc7, 0x00, 0x00, 0x60, 0x00});  // mov $kData, %rdi
  p.run({0xbe, 0x00, 0x10, 0x00, 0x00});              // mov $4096, %esi
  p.run({0xb8, 0x0a, 0x00, 0x00, 0x00});              // mov $10, %eax
  p.run(system_call);                                 // mprotect
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.memory(4, TraceeAddr{kData}).all());
  EXPECT_EQ(solved.memory(3, TraceeAddr{kData}).mask, 0U);
  EXPECT_TRUE(solved.memory(3, TraceeAddr{kStack}).all());
}

TEST(ValuesRules, CodeOnPagesThatCouldBeWrittenIsNotTrusted) {
  Program p;
  p.code_kind = PageKind::kPrivate;
  p.run(add_rbx_1);
  p.regs[cpu::kRbx] = cpu::known(8);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kRbx).mask, 0U);
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(8));
}

ExecutedInsn executed(const Bytes& bytes) {
  ExecutedInsn out;
  std::ranges::copy(bytes, out.bytes.begin());
  out.facts = arch::decode_insn(arch::Isa::kAmd64, TraceeAddr{kCode}, bytes);
  return out;
}

TEST(ValuesRules, CodeThatTheTraceTellsIsTrusted) {
  Program p;
  p.code_kind = PageKind::kUnknown;
  p.run({0x90, 0x90, 0x90, 0x90});
  const ExecutedInsn add = executed(add_rbx_1);
  p.window.steps[0].code = &add;
  p.regs[cpu::kRbx] = cpu::known(8);
  EXPECT_EQ(p.solve().reg(0, cpu::kRbx), cpu::known(7));
}

TEST(ValuesRules, TheBytesThatWereExecutedWereInMemory) {
  constexpr std::uint64_t kCodeBytes = 0x01c38348;  // add_rbx_1
  constexpr std::uint64_t kHalf = 0xffffffff;
  const ExecutedInsn add = executed(add_rbx_1);
  for (const PageKind kind : {PageKind::kPrivate, PageKind::kUnknown}) {
    Program p;
    p.code_kind = kind;
    p.run(add_rbx_1);
    p.run(store_to_rdx);
    const ExecutedInsn store = executed(store_to_rdx);
    p.window.steps[0].code = &add;
    p.window.steps[1].code = &store;
    // The store overwrites the code.
    p.regs[cpu::kRdx] = cpu::known(kCode);
    p.regs[cpu::kRsi] = cpu::known(0);
    const SolvedWindow solved = p.solve();
    EXPECT_EQ(solved.memory(1, TraceeAddr{kCode}).value & kHalf,
              kind == PageKind::kPrivate ? kCodeBytes : 0U);
    EXPECT_EQ(solved.memory(1, TraceeAddr{kCode}).mask & kHalf,
              kind == PageKind::kPrivate ? kHalf : 0U);
  }
}

/// The instruction that is there now does not tell what was interrupted half done.
TEST(ValuesRules, ASignalInCodeThatCouldBeWrittenHidesWhatWasBefore) {
  const ExecutedInsn add = executed(add_rbx_1);
  const ExecutedInsn movs = executed({0xf3, 0xa4});  // rep movsb
  for (const ExecutedInsn* interrupted : {static_cast<const ExecutedInsn*>(nullptr), &add, &movs}) {
    Program p;
    p.code_kind = PageKind::kUnknown;
    p.run(add_rbx_1);
    p.run(add_rbx_1);
    for (Step& step : p.window.steps) step.code = &add;
    p.window.events.push_back({1, EventKind::kSignal, p.window.steps[1].pc, interrupted});
    p.regs[cpu::kRbx] = cpu::known(8);
    p.regs[cpu::kRcx] = cpu::known(3);
    const SolvedWindow solved = p.solve();
    EXPECT_EQ(solved.reg(0, cpu::kRbx).mask, interrupted == nullptr ? 0U : ~std::uint64_t{0});
    EXPECT_EQ(solved.reg(0, cpu::kRcx).mask, interrupted == &add ? ~std::uint64_t{0} : 0U);
  }
}

TEST(ValuesRules, NothingIsKnownBeforeAnUnknownSystemCall) {
  Program p;
  p.run(system_call);
  p.regs[cpu::kRbx] = cpu::known(8);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(0, cpu::kRbx).mask, 0U);
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, ASystemCallWithAnUnknownBufferIsABarrier) {
  Program p;
  p.run({0xb8, 0x00, 0x00, 0x00, 0x00});  // mov $0, %eax
  p.run(system_call);                     // read
  p.regs[cpu::kRbx] = cpu::known(8);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(8));
  EXPECT_EQ(solved.memory(1, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, NothingIsKnownBeyondAGap) {
  Program p;
  p.run({0x90});
  p.run({0x90});
  p.window.events.push_back({1, EventKind::kGap, TraceeAddr{}});
  p.regs[cpu::kRbx] = cpu::known(8);
  const SolvedWindow solved = p.solve();
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(8));
  EXPECT_EQ(solved.reg(0, cpu::kRbx).mask, 0U);
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData}).mask, 0U);
}

TEST(ValuesRules, AStoreToAnUnknownAddressIsABarrier) {
  Program p;
  p.run(mov_rax_data);
  p.run(load_rcx);
  p.run({0x31, 0xc9});  // xor %ecx, %ecx
  p.run(store_to_rdx);
  p.run({0x31, 0xd2});  // xor %edx, %edx
  p.run({0x31, 0xf6});  // xor %esi, %esi
  p.memory[kData] = 7;
  EXPECT_EQ(p.solve().reg(2, cpu::kRcx).mask, 0U);
}

TEST(ValuesRules, AStoreCannotHaveLeftBytesThatItDidNotWrite) {
  Program p;
  p.run(mov_rax_data);
  p.run(load_rcx);
  p.run({0x31, 0xc9});  // xor %ecx, %ecx
  p.run(store_to_rdx);
  p.run({0x31, 0xd2});  // xor %edx, %edx
  p.regs[cpu::kRsi] = cpu::known(0x0102030405060708);
  p.memory[kData] = 0x1112131415161708;
  // The lowest byte may come from the store; none of the others can.
  EXPECT_EQ(p.solve().reg(2, cpu::kRcx), (Known{0x1112131415161700, ~std::uint64_t{0xff}}));
}

TEST(ValuesRules, ContradictionsShowThatNothingIsUnderstood) {
  Program p;
  p.run({0x48, 0xc7, 0xc3, 0x03, 0x00, 0x00, 0x00});  // mov $3, %rbx
  p.regs[cpu::kRbx] = cpu::known(4);
  p.regs[kR8] = cpu::known(4);
  const SolvedWindow solved = p.solve();
  EXPECT_FALSE(solved.consistent());
  EXPECT_EQ(solved.reg(0, kR8).mask, 0U);
}

TEST(ValuesRules, ARecordedValueIsKnownBeforeItsStep) {
  Program p;
  p.run({0x48, 0x8b, 0x18});  // mov (%rax), %rbx
  p.run({0x90});
  p.run({0x48, 0x31, 0xdb});  // xor %rbx, %rbx
  p.window.facts.push_back({.step = 1, .kind = cpu::kRbx, .value = 0x1234});
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.reg(0, cpu::kRbx).mask, 0U);
  EXPECT_TRUE(solved.reg(2, cpu::kRbx).all());
  EXPECT_EQ(solved.reg(2, cpu::kRbx).value, 0x1234U);
}

TEST(ValuesRules, ARecordedValueThatCannotBeIsAContradiction) {
  Program p;
  p.run({0x48, 0xc7, 0xc3, 0x03, 0x00, 0x00, 0x00});  // mov $3, %rbx
  p.run({0x90});
  p.run({0x48, 0x31, 0xdb});  // xor %rbx, %rbx
  p.window.facts.push_back({.step = 1, .kind = cpu::kRbx, .value = 4});
  EXPECT_FALSE(p.solve().consistent());
}

TEST(ValuesRules, OverwrittenBytesAreKnownBeforeTheStore) {
  Program p;
  p.run({0x48, 0x8b, 0x1f});                          // mov (%rdi), %rbx
  p.run({0x48, 0xc7, 0x07, 0x05, 0x00, 0x00, 0x00});  // movq $5, (%rdi)
  p.run({0x48, 0xc7, 0xc3, 0x03, 0x00, 0x00, 0x00});  // mov $3, %rbx
  p.memory[kData] = 5;
  p.regs[cpu::kRdi] = cpu::known(kData);
  p.regs[cpu::kRbx] = cpu::known(3);
  p.window.facts.push_back({.step = 1, .kind = arch::kind_of({0, 8}), .value = 0x1234});
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.reg(1, cpu::kRbx), cpu::known(0x1234));
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData}), cpu::known(0x1234));
}

TEST(ValuesRules, OverwrittenBytesOfAStoreInterruptedBeforeItAreTheNewest) {
  Program p;
  p.run({0x90});
  p.run({0x48, 0xc7, 0x07, 0x05, 0x00, 0x00, 0x00});  // movq $5, (%rdi)
  p.memory[kData] = 5;
  p.regs[cpu::kRdi] = cpu::known(kData);
  p.window.facts.push_back({.step = 1, .kind = arch::kind_of({0, 8}), .value = 1});
  p.window.facts.push_back({.step = 1, .kind = arch::kind_of({0, 8}), .value = 2});
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_EQ(solved.memory(0, TraceeAddr{kData}), cpu::known(2));
}

TEST(ValuesRules, AStoreOfWhatItOverwritesIsNoBarrier) {
  for (const std::uint64_t old : {5U, 6U}) {
    Program p;
    p.run({0x48, 0xc7, 0x06, 0x05, 0x00, 0x00, 0x00});  // movq $5, (%rsi)
    p.run({0x48, 0x31, 0xf6});                          // xor %rsi, %rsi
    p.memory[kData] = 5;
    p.window.facts.push_back({.step = 0, .kind = arch::kind_of({0, 8}), .value = old});
    const SolvedWindow solved = p.solve();
    EXPECT_EQ(solved.memory(0, TraceeAddr{kData}).all(), old == 5);
  }
}

TEST(ValuesRules, OverwrittenBytesOfAnUnknownPlaceTellNothing) {
  Program p;
  p.run({0x48, 0xc7, 0x06, 0x05, 0x00, 0x00, 0x00});  // movq $5, (%rsi)
  p.run({0x48, 0x31, 0xf6});                          // xor %rsi, %rsi
  p.window.facts.push_back({.step = 0, .kind = arch::kind_of({0, 8}), .value = 0x1234});
  const SolvedWindow solved = p.solve();
  EXPECT_TRUE(solved.consistent());
  EXPECT_NE(solved.memory(0, TraceeAddr{kData}).value, 0x1234U);
}

}  // namespace
}  // namespace backtrail::decoder::values
