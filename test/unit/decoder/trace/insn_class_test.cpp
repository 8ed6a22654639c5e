// SPDX-License-Identifier: Apache-2.0
// The encoder and libipt must classify instructions alike, or packets lose their meaning.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "arch/insn.hpp"
#include "test/support/ipt_oracle.hpp"

namespace backtrail::test {
namespace {

using arch::InsnKind;

struct Sample {
  const char* name;
  std::string_view hex;
  bool amd64_only = false;

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> result;
    for (std::size_t i = 0; i < hex.size(); i += 3) {
      result.push_back(
          static_cast<std::uint8_t>(std::stoul(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return result;
  }
};

void PrintTo(const Sample& sample, std::ostream* out) {
  *out << sample.name;
}

constexpr Sample kSamples[] = {
    {"nop", "90"},
    {"pause", "f3 90"},
    {"rep movsb", "f3 a4"},
    {"endbr64", "f3 0f 1e fa"},
    {"ud2", "0f 0b"},
    {"hlt", "f4"},
    {"cpuid", "0f a2"},
    {"xbegin", "c7 f8 00 00 00 00"},
    {"xabort", "c6 f8 00"},
    {"xend", "0f 01 d5"},
    {"vzeroupper", "c5 f8 77"},
    {"vmovaps zmm", "62 f1 7c 48 28 c1"},
    {"push imm32", "68 01 02 03 04"},
    {"movabs", "48 b8 01 02 03 04 05 06 07 08", true},
    {"jz short", "74 10"},
    {"jnz near", "0f 85 10 00 00 00"},
    {"jz with hint", "3e 74 10"},
    {"loop", "e2 10"},
    {"loope", "e1 10"},
    {"loopne", "e0 10"},
    {"jrcxz", "e3 10"},
    {"jecxz", "67 e3 10"},
    {"jmp short", "eb 10"},
    {"jmp near", "e9 10 00 00 00"},
    {"bnd jmp", "f2 e9 10 00 00 00"},
    {"jmp rax", "ff e0"},
    {"notrack jmp rax", "3e ff e0"},
    {"jmp [mem]", "ff 25 00 00 00 00"},
    {"jmp [rax*8+mem]", "ff 24 c5 00 00 00 00"},
    {"call near", "e8 10 00 00 00"},
    {"call next", "e8 00 00 00 00"},
    {"addr32 call", "67 e8 10 00 00 00"},
    {"call rax", "ff d0"},
    {"call r11", "41 ff d3", true},
    {"call [mem]", "ff 15 00 00 00 00"},
    {"ret", "c3"},
    {"rep ret", "f3 c3"},
    {"bnd ret", "f2 c3"},
    {"ret imm16", "c2 08 00"},
    {"syscall", "0f 05", true},
    {"sysenter", "0f 34"},
    {"int 0x80", "cd 80"},
    {"int 3", "cd 03"},
    {"int3", "cc"},
    {"int1", "f1"},
    {"iret", "cf"},
    {"iretq", "48 cf", true},
    {"retf", "cb"},
    {"retf imm16", "ca 08 00"},
    {"call far [mem]", "ff 18"},
    {"jmp far [mem]", "ff 28"},
};

/// Returns libipt's classes for a kind. libipt distinguishes far calls, jumps and returns, and
/// separates direct from indirect only internally.
std::vector<std::string> classes_of(InsnKind kind) {
  switch (kind) {
    case InsnKind::kOther:
      return {"other"};
    case InsnKind::kConditionalJump:
      return {"cond_jump"};
    case InsnKind::kJump:
    case InsnKind::kIndirectJump:
      return {"jump"};
    case InsnKind::kCall:
    case InsnKind::kIndirectCall:
      return {"call"};
    case InsnKind::kReturn:
      return {"return"};
    case InsnKind::kSystemCall:
      return {"far_call"};
    case InsnKind::kFarTransfer:
      return {"far_call", "far_return", "far_jump"};
  }
  return {};
}

class InsnClass : public testing::TestWithParam<Sample> {};

TEST_P(InsnClass, IsTheSameForTheEncoderAndForLibipt) {
  for (const arch::Isa isa : {arch::Isa::kAmd64, arch::Isa::kI386}) {
    if (isa == arch::Isa::kI386 && GetParam().amd64_only) continue;
    const std::vector<std::uint8_t> bytes = GetParam().bytes();
    const arch::InsnFacts facts = arch::decode_insn(isa, TraceeAddr{0x1000}, bytes);
    EXPECT_EQ(facts.length, bytes.size());
    const std::string ipt_class = ipt_insn_class(isa, bytes);
    const std::vector<std::string> expected = classes_of(facts.kind);
    EXPECT_NE(std::find(expected.begin(), expected.end(), ipt_class), expected.end())
        << "kind " << static_cast<int>(facts.kind) << ", libipt says " << ipt_class << ", isa "
        << static_cast<int>(isa);
  }
}

INSTANTIATE_TEST_SUITE_P(All, InsnClass, testing::ValuesIn(kSamples));

}  // namespace
}  // namespace backtrail::test
