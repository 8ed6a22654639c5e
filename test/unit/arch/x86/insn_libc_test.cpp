// SPDX-License-Identifier: Apache-2.0
// Compares the facts of every instruction of a real library with Zydis's classification.

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <Zydis/Zydis.h>
#include <elf.h>
#include <gtest/gtest.h>

#include "arch/base/file_bytes.hpp"
#include "arch/insn.hpp"
#include "arch/x86/insn_length.hpp"

namespace backtrail::arch {
namespace {

struct Code {
  TraceeAddr address;
  std::vector<std::uint8_t> bytes;
};

template <typename T>
std::optional<T> read_at(std::span<const std::uint8_t> file, std::uint64_t offset) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

template <typename Header, typename Section>
std::optional<Code> text_section(std::span<const std::uint8_t> file) {
  const auto header = read_at<Header>(file, 0);
  if (!header) return std::nullopt;
  const auto section_at = [&](unsigned i) {
    return read_at<Section>(file, header->e_shoff + std::uint64_t{i} * sizeof(Section));
  };
  const auto names = section_at(header->e_shstrndx);
  if (!names) return std::nullopt;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    const auto section = section_at(i);
    if (!section || section->sh_offset + section->sh_size > file.size()) continue;
    const auto name = read_at<std::array<char, 6>>(file, names->sh_offset + section->sh_name);
    if (!name || std::string_view{name->data(), 6} != std::string_view{".text\0", 6}) continue;
    const auto first = file.begin() + static_cast<std::ptrdiff_t>(section->sh_offset);
    return Code{TraceeAddr{section->sh_addr},
                {first, first + static_cast<std::ptrdiff_t>(section->sh_size)}};
  }
  return std::nullopt;
}

std::optional<Code> text_of(const char* path, Isa isa) {
  const auto file = file_bytes(path).value_or(std::vector<std::uint8_t>{});
  return isa == Isa::kAmd64 ? text_section<Elf64_Ehdr, Elf64_Shdr>(file)
                            : text_section<Elf32_Ehdr, Elf32_Shdr>(file);
}

InsnKind transfer_kind(const ZydisDecodedInstruction& insn, InsnKind direct, InsnKind indirect) {
  if (insn.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return InsnKind::kFarTransfer;
  return insn.raw.imm[0].is_relative == ZYAN_TRUE ? direct : indirect;
}

InsnKind kind_by_zydis(const ZydisDecodedInstruction& insn) {
  switch (insn.mnemonic) {
    case ZYDIS_MNEMONIC_XBEGIN:  // Not branches by the definition of InsnKind.
    case ZYDIS_MNEMONIC_XEND:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_JKZD:  // Exists on the first generation of Xeon Phi only.
    case ZYDIS_MNEMONIC_JKNZD:
    case ZYDIS_MNEMONIC_BOUND:
      return InsnKind::kOther;
    case ZYDIS_MNEMONIC_INT:
      return insn.raw.imm[0].value.u == 0x80 ? InsnKind::kSystemCall : InsnKind::kFarTransfer;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
      return InsnKind::kFarTransfer;
    default:
      break;
  }
  switch (insn.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return InsnKind::kConditionalJump;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return transfer_kind(insn, InsnKind::kJump, InsnKind::kIndirectJump);
    case ZYDIS_CATEGORY_CALL:
      return transfer_kind(insn, InsnKind::kCall, InsnKind::kIndirectCall);
    case ZYDIS_CATEGORY_RET:
      return transfer_kind(insn, InsnKind::kReturn, InsnKind::kReturn);
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSRET:
      return InsnKind::kFarTransfer;
    case ZYDIS_CATEGORY_SYSCALL:
      return InsnKind::kSystemCall;
    default:
      return InsnKind::kOther;
  }
}

/// Returns the target of a direct branch as Zydis computes it.
std::uint64_t target_by_zydis(const ZydisDecodedInstruction& insn, TraceeAddr pc, Isa isa) {
  if (insn.raw.imm[0].is_relative != ZYAN_TRUE) return 0;
  const std::uint64_t target =
      pc.value() + insn.length + static_cast<std::uint64_t>(insn.raw.imm[0].value.s);
  return isa == Isa::kI386 ? target & 0xffffffff : target;
}

class LibraryCode : public ::testing::Test {
 protected:
  /// Decodes linearly. Data between functions is decoded as instructions too, which only widens the
  /// test.
  static void compare(const char* path, Isa isa) {
    const std::optional<Code> code = text_of(path, isa);
    if (!code) GTEST_SKIP() << path << " is not here or has no .text";
    ZydisDecoder decoder;
    const bool amd64 = isa == Isa::kAmd64;
    ZydisDecoderInit(&decoder, amd64 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LEGACY_32,
                     amd64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    std::size_t branches = 0;
    unsigned wrong = 0;
    for (std::size_t at = 0; at < code->bytes.size() && wrong < 10;) {
      const auto rest = std::span{code->bytes}.subspan(at);
      const auto bytes = rest.first(std::min(kMaxInsnBytes, rest.size()));
      const TraceeAddr pc = code->address + at;
      const InsnFacts facts = x86::decode(isa, x86::NearBranchRule::kIntel, pc, bytes);
      ZydisDecoderContext context;
      ZydisDecodedInstruction insn;
      const bool known = ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder, &context, bytes.data(), bytes.size(), &insn));
      const bool same = known ? facts.length == insn.length && facts.kind == kind_by_zydis(insn) &&
                                    (facts.kind == InsnKind::kOther ||
                                     facts.target.value() == target_by_zydis(insn, pc, isa))
                              : !facts.known();
      if (!same) {
        ++wrong;
        ADD_FAILURE() << fmt::format("{}: length {} kind {} target {}", pc, facts.length,
                                     static_cast<int>(facts.kind), facts.target);
      }
      branches += facts.is_branch() ? 1U : 0U;
      at += std::max<std::size_t>(facts.length, 1);
    }
    EXPECT_GT(branches, 1000U);
  }
};

TEST_F(LibraryCode, OfLibc64IsReadAsZydisReadsIt) {
  compare("/lib/x86_64-linux-gnu/libc.so.6", Isa::kAmd64);
}

TEST_F(LibraryCode, OfLibc32IsReadAsZydisReadsIt) {
  compare("/usr/lib32/libc.so.6", Isa::kI386);
}

}  // namespace
}  // namespace backtrail::arch
