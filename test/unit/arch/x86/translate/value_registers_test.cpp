// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/value_registers.hpp"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::arch::x86::translate {
namespace {

using Set = std::optional<std::uint16_t>;

constexpr std::uint16_t set_of(Gpr reg) {
  return static_cast<std::uint16_t>(1U << static_cast<unsigned>(reg));
}

ValueRegisters of(const std::vector<std::uint8_t>& bytes) {
  return value_registers(decode_source(TraceeAddr{0x400000}, bytes));
}

TEST(ValueRegisters, ResultsFollowFromTheRegistersThatAreRead) {
  EXPECT_EQ(of({0x48, 0x89, 0xf8}).follows_from, Set{set_of(Gpr::kRdi)});        // mov %rdi, %rax
  EXPECT_EQ(of({0x48, 0x83, 0xc7, 0x08}).follows_from, Set{set_of(Gpr::kRdi)});  // add $8, %rdi
  EXPECT_EQ(of({0xff, 0xc7}).follows_from, Set{set_of(Gpr::kRdi)});              // inc %edi
  const auto both = static_cast<std::uint16_t>(set_of(Gpr::kRdi) | set_of(Gpr::kRsi));
  EXPECT_EQ(of({0x48, 0x01, 0xf7}).follows_from, Set{both});              // add %rsi, %rdi
  EXPECT_EQ(of({0x48, 0x8d, 0x44, 0x37, 0x08}).follows_from, Set{both});  // lea 8(%rdi,%rsi), %rax
}

TEST(ValueRegisters, ConstantsFollowFromNothing) {
  EXPECT_EQ(of({0xb8, 0x01, 0x00, 0x00, 0x00}).follows_from, Set{0});     // mov $1, %eax
  EXPECT_EQ(of({0x31, 0xc0}).follows_from, Set{0});                       // xor %eax, %eax
  EXPECT_EQ(of({0x48, 0x8d, 0x05, 0x10, 0, 0, 0}).follows_from, Set{0});  // lea 0x10(%rip), %rax
}

TEST(ValueRegisters, APartOfARegisterKeepsTheRest) {
  EXPECT_EQ(of({0xb0, 0x01}).follows_from, Set{set_of(Gpr::kRax)});  // mov $1, %al
  EXPECT_EQ(of({0x30, 0xc0}).follows_from, Set{set_of(Gpr::kRax)});  // xor %al, %al
}

TEST(ValueRegisters, LoadsAndOthersFollowFromMore) {
  EXPECT_EQ(of({0x48, 0x8b, 0x07}).follows_from, std::nullopt);              // mov (%rdi), %rax
  EXPECT_EQ(of({0x48, 0x03, 0x07}).follows_from, std::nullopt);              // add (%rdi), %rax
  EXPECT_EQ(of({0x48, 0x89, 0x07}).follows_from, std::nullopt);              // mov %rax, (%rdi)
  EXPECT_EQ(of({0x48, 0x11, 0xf7}).follows_from, std::nullopt);              // adc %rsi, %rdi
  EXPECT_EQ(of({0x48, 0x87, 0xf7}).follows_from, std::nullopt);              // xchg %rsi, %rdi
  EXPECT_EQ(of({0x8c, 0xd8}).follows_from, std::nullopt);                    // mov %ds, %eax
  EXPECT_EQ(of({0x66, 0x48, 0x0f, 0x7e, 0xc0}).follows_from, std::nullopt);  // movq %xmm0, %rax
}

TEST(ValueRegisters, WhatComesFromVectorsFollowsFromNothing) {
  EXPECT_EQ(of({0xc5, 0xf8, 0x93, 0xc1}).unrelated, set_of(Gpr::kRax));        // kmovw %k1, %eax
  EXPECT_EQ(of({0x66, 0x48, 0x0f, 0x7e, 0xc0}).unrelated, set_of(Gpr::kRax));  // movq %xmm0, %rax
  EXPECT_EQ(of({0xf2, 0x0f, 0x2c, 0xc8}).unrelated, set_of(Gpr::kRcx));  // cvttsd2si %xmm0, %ecx
  EXPECT_EQ(of({0x0f, 0x31}).unrelated, set_of(Gpr::kRax) | set_of(Gpr::kRdx));  // rdtsc
  EXPECT_EQ(of({0xf3, 0x48, 0x0f, 0x1e, 0xc8}).unrelated, set_of(Gpr::kRax));    // rdsspq %rax
  EXPECT_EQ(of({0x48, 0x89, 0xf8}).unrelated, 0U);                               // mov %rdi, %rax
  EXPECT_EQ(of({0x66, 0x48, 0x0f, 0x6e, 0xc0}).unrelated, 0U);                   // movq %rax, %xmm0
}

TEST(ValueRegisters, TheStackPointerIsLostWhereItIsSet) {
  EXPECT_EQ(of({0xc9}).lost_stack, set_of(Gpr::kRsp));                    // leave
  EXPECT_EQ(of({0x48, 0x8d, 0x65, 0xd8}).lost_stack, set_of(Gpr::kRsp));  // lea -0x28(%rbp), %rsp
  EXPECT_EQ(of({0x48, 0x89, 0xdc}).lost_stack, set_of(Gpr::kRsp));        // mov %rbx, %rsp
  EXPECT_EQ(of({0x48, 0x83, 0xec, 0x18}).lost_stack, 0U);                 // sub $0x18, %rsp
  EXPECT_EQ(of({0x48, 0x8d, 0x64, 0x24, 0x18}).lost_stack, 0U);           // lea 0x18(%rsp), %rsp
  EXPECT_EQ(of({0x53}).lost_stack, 0U);                                   // push %rbx
  EXPECT_EQ(of({0x5b}).lost_stack, 0U);                                   // pop %rbx
  EXPECT_EQ(of({0xc3}).lost_stack, 0U);                                   // ret
}

TEST(ValueRegisters, APopLosesWhatItRestores) {
  EXPECT_EQ(of({0x5b}).lost, set_of(Gpr::kRbx));  // pop %rbx
  EXPECT_EQ(of({0x58}).lost, 0U);                 // pop %rax
  EXPECT_EQ(of({0xc9}).lost, 0U);                 // leave
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
