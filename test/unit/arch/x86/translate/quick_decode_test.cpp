// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/quick_decode.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "test/support/effort.hpp"

namespace backtrail::arch::x86::translate {
namespace {

using Bytes = std::array<std::uint8_t, kMaxInsnBytes>;

constexpr TraceeAddr kPc{0x5555'1234'5678};

/// Returns what differs from the general decoder's result, empty if nothing does.
std::string difference(const Bytes& bytes, SourceInsn quick) {
  std::fill(quick.bytes.begin() + quick.length, quick.bytes.end(), 0);
  const SourceInsn general = decode_source(kPc, bytes);
  if (quick == general) return {};
  std::string text = fmt::format("{:02x}:", fmt::join(bytes, " "));
  const auto compare = [&](const char* what, auto left, auto right) {
    if (left != right) text += fmt::format(" {} {} (right: {})", what, left, right);
  };
  compare("length", quick.length, general.length);
  compare("kind", static_cast<int>(quick.kind), static_cast<int>(general.kind));
  compare("target", quick.target.value(), general.target.value());
  compare("uses_r10", quick.uses_r10, general.uses_r10);
  compare("writes_r10", quick.writes_r10, general.writes_r10);
  compare("uses_r11", quick.uses_r11, general.uses_r11);
  compare("writes_r11", quick.writes_r11, general.writes_r11);
  compare("writes_rax", quick.writes_rax, general.writes_rax);
  compare("uses_rcx", quick.uses_rcx, general.uses_rcx);
  compare("sets_rcx", quick.sets_rcx, general.sets_rcx);
  compare("stores", quick.stores, general.stores);
  compare("high byte", quick.names_high_byte, general.names_high_byte);
  compare("relative", quick.relative, general.relative);
  compare("condition", quick.condition, general.condition);
  compare("modrm", quick.modrm_offset, general.modrm_offset);
  compare("displacement", quick.displacement_offset, general.displacement_offset);
  compare("eax", quick.sets_eax_to.value_or(1), general.sets_eax_to.value_or(1));
  compare("names", quick.names.value_or(TraceeAddr{1}).value(),
          general.names.value_or(TraceeAddr{1}).value());
  return text;
}

/// Every opcode with every prefix and REX prefix, and every seventh ModRM byte (sanitized: every
/// 37th), followed by random bytes.
TEST(QuickDecode, DecodesAsTheGeneralDecoderDoes) {
  // NOLINTNEXTLINE(cert-msc51-cpp,cert-msc32-c): a failure must be repeatable
  std::mt19937_64 random{7};
  std::size_t wrong = 0;
  constexpr int kStep = test::kSanitized ? 37 : 7;
  const auto check = [&](const std::vector<std::uint8_t>& prefixes, int opcode, int modrm) {
    Bytes bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    auto end = std::copy(prefixes.begin(), prefixes.end(), bytes.begin());
    if (opcode > 0xff) *end++ = 0x0f;
    *end++ = static_cast<std::uint8_t>(opcode);
    *end++ = static_cast<std::uint8_t>(modrm);
    SourceInsn insn;
    if (!quick_decode(kPc, bytes, insn)) return;
    const std::string text = difference(bytes, insn);
    if (!text.empty() && ++wrong < 20) ADD_FAILURE() << text;
  };
  for (const int prefix : {0, 0x66, 0xf2, 0xf3, 0x67, 0x64, 0xf0}) {
    for (int rex = 0x3f; rex < 0x50; ++rex) {
      std::vector<std::uint8_t> prefixes;
      if (prefix != 0) prefixes.push_back(static_cast<std::uint8_t>(prefix));
      if (rex > 0x3f) prefixes.push_back(static_cast<std::uint8_t>(rex));
      for (int opcode = 0; opcode < 0x200; ++opcode) {
        for (int modrm = (rex + opcode) % kStep; modrm < 256; modrm += kStep) {
          check(prefixes, opcode, modrm);
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(QuickDecode, KnowsMostInstructionsOfALibrary) {
  std::ifstream file{"/lib/x86_64-linux-gnu/libc.so.6", std::ios::binary};
  const std::vector<char> library{std::istreambuf_iterator<char>{file}, {}};
  if (library.size() < 0x100000) GTEST_SKIP() << "no libc.so.6 at its usual place";
  std::size_t all = 0;
  std::size_t quick = 0;
  // The middle of the file is code.
  for (std::size_t at = library.size() / 4; at < library.size() / 2;) {
    Bytes bytes{};
    std::copy_n(library.begin() + static_cast<std::ptrdiff_t>(at), bytes.size(), bytes.begin());
    const SourceInsn insn = decode_source(kPc, bytes);
    SourceInsn fast;
    ++all;
    if (quick_decode(kPc, bytes, fast)) {
      ++quick;
      ASSERT_EQ(difference(bytes, fast), "");
    }
    at += std::max<std::size_t>(insn.length, 1);
  }
  EXPECT_GT(quick * 100, all * 90);
}

TEST(QuickDecode, LeavesWhatMayBeCutOff) {
  constexpr std::array<std::uint8_t, kMaxInsnBytes> kReturn{0xc3};
  SourceInsn insn;
  EXPECT_TRUE(quick_decode(kPc, kReturn, insn));
  SourceInsn cut;
  EXPECT_FALSE(quick_decode(kPc, std::span{kReturn}.first(kMaxInsnBytes - 1), cut));
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
