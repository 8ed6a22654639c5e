// SPDX-License-Identifier: Apache-2.0
#include "arch/insn.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arch/x86/insn_length.hpp"
#include "test/unit/arch/hex_bytes.hpp"

namespace backtrail::arch {
namespace {

using x86::NearBranchRule;

constexpr TraceeAddr kPc{0x401000};
constexpr auto k64 = Isa::kAmd64;
constexpr auto k32 = Isa::kI386;

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the order of the columns.
struct Row {
  Isa isa;
  const char* bytes;
  unsigned length;
  InsnKind kind;
  std::uint64_t target = 0;
};

// Lengths and kinds are those of the opcode maps in SDM vol. 2. Instructions on which CPUs differ
// are tested below.
constexpr Row kRows[] = {
    // Falls through.
    {k64, "90", 1, InsnKind::kOther},
    {k64, "48 89 e5", 3, InsnKind::kOther},
    {k64, "48 b8 88 77 66 55 44 33 22 11", 10, InsnKind::kOther},
    {k64, "66 0f 1f 84 00 00 00 00 00", 9, InsnKind::kOther},
    {k64, "66 66 2e 0f 1f 84 00 00 00 00 00", 11, InsnKind::kOther},
    {k64, "f3 0f 1e fa", 4, InsnKind::kOther},  // endbr64
    {k64, "0f 1e fa", 3, InsnKind::kOther},     // nop edx, edi
    {k64, "8d 04 85 00 00 00 00", 7, InsnKind::kOther},
    {k64, "67 8d 04 05 00 00 00 00", 8, InsnKind::kOther},
    {k64, "0f a2", 2, InsnKind::kOther},                 // cpuid
    {k64, "f3 90", 2, InsnKind::kOther},                 // pause
    {k64, "0f 01 d0", 3, InsnKind::kOther},              // xgetbv
    {k64, "0f 01 d9", 3, InsnKind::kOther},              // vmmcall
    {k64, "0f 01 ee", 3, InsnKind::kOther},              // rdpkru
    {k64, "0f ae f0", 3, InsnKind::kOther},              // mfence
    {k64, "c7 f8 10 00 00 00", 6, InsnKind::kOther},     // xbegin
    {k64, "c6 f8 01", 3, InsnKind::kOther},              // xabort
    {k64, "0f 01 d5", 3, InsnKind::kOther},              // xend
    {k64, "f4", 1, InsnKind::kOther},                    // hlt
    {k64, "0f 0b", 2, InsnKind::kOther},                 // ud2
    {k64, "0f b9 05 00 00 00 00", 7, InsnKind::kOther},  // ud1 eax, [rip]
    {k64, "0f ff c0", 3, InsnKind::kOther},              // ud0 eax, eax
    {k64, "66 f3 68 34 12", 5, InsnKind::kOther},        // push imm16
    {k64, "f0 0f b1 0a", 4, InsnKind::kOther},           // lock cmpxchg
    {k64, "ff 00", 2, InsnKind::kOther},                 // inc dword
    {k64, "ff 35 10 00 00 00", 6, InsnKind::kOther},     // push [rip+16]
    {k64, "8f 00", 2, InsnKind::kOther},                 // pop [rax]
    {k64, "c4 e2 7d 18 00", 5, InsnKind::kOther},        // vbroadcastss
    {k64, "c5 f8 77", 3, InsnKind::kOther},              // vzeroupper
    {k64, "c4 e1 fb 92 cb", 5, InsnKind::kOther},        // kmovq k1, rbx
    {k64, "62 f1 fe 48 6f 06", 6, InsnKind::kOther},     // vmovdqu64 zmm0, [rsi]
    {k64, "62 d1 4c 70 58 cc", 6, InsnKind::kOther},     // vaddps, rounding in EVEX
    {k64, "62 f1 7f 48 7f 47 01", 7, InsnKind::kOther},  // vmovdqu8, disp8
    {k64, "c5 64 85 c0", 0, InsnKind::kOther},           // too short for its disp32
    {k32, "90", 1, InsnKind::kOther},
    {k32, "40", 1, InsnKind::kOther},                    // inc eax
    {k32, "62 00", 2, InsnKind::kOther},                 // bound
    {k32, "c5 00", 2, InsnKind::kOther},                 // lds
    {k32, "c4 40 04", 3, InsnKind::kOther},              // les
    {k32, "c5 f8 77", 3, InsnKind::kOther},              // vzeroupper
    {k32, "62 f1 7c 48 10 00", 6, InsnKind::kOther},     // vmovups zmm0, [eax]
    {k32, "62 f1 6c 78 58 cc", 6, InsnKind::kOther},     // vaddps with rounding
    {k64, "66 2e 0f 78 c6 8c 3d", 7, InsnKind::kOther},  // extrq xmm6, 0x8c, 0x3d
    {k32, "f3 0f 1e fb", 4, InsnKind::kOther},           // endbr32
    {k32, "65 a1 14 00 00 00", 6, InsnKind::kOther},
    {k32, "66 b8 34 12", 4, InsnKind::kOther},
    // Conditional jumps.
    {k64, "74 10", 2, InsnKind::kConditionalJump, 0x401012},
    {k64, "75 fe", 2, InsnKind::kConditionalJump, 0x401000},
    {k64, "7f 80", 2, InsnKind::kConditionalJump, 0x400f82},
    {k64, "70 00", 2, InsnKind::kConditionalJump, 0x401002},
    {k64, "2e 74 10", 3, InsnKind::kConditionalJump, 0x401013},  // not-taken hint
    {k64, "f2 74 10", 3, InsnKind::kConditionalJump, 0x401013},  // bnd
    {k64, "0f 84 00 01 00 00", 6, InsnKind::kConditionalJump, 0x401106},
    {k64, "0f 8f fa ff ff ff", 6, InsnKind::kConditionalJump, 0x401000},
    {k64, "f2 0f 85 00 01 00 00", 7, InsnKind::kConditionalJump, 0x401107},
    {k64, "48 0f 85 00 01 00 00", 7, InsnKind::kConditionalJump, 0x401107},
    {k64, "e0 10", 2, InsnKind::kConditionalJump, 0x401012},     // loopne
    {k64, "e1 10", 2, InsnKind::kConditionalJump, 0x401012},     // loope
    {k64, "e2 fe", 2, InsnKind::kConditionalJump, 0x401000},     // loop
    {k64, "67 e2 fd", 3, InsnKind::kConditionalJump, 0x401000},  // loop, ecx
    {k64, "e3 10", 2, InsnKind::kConditionalJump, 0x401012},     // jrcxz
    {k64, "67 e3 10", 3, InsnKind::kConditionalJump, 0x401013},  // jecxz
    {k32, "74 10", 2, InsnKind::kConditionalJump, 0x401012},
    {k32, "0f 84 00 01 00 00", 6, InsnKind::kConditionalJump, 0x401106},
    {k32, "e3 10", 2, InsnKind::kConditionalJump, 0x401012},   // jecxz
    {k32, "66 74 10", 3, InsnKind::kConditionalJump, 0x1013},  // ip, not eip
    {k32, "66 0f 84 00 01", 5, InsnKind::kConditionalJump, 0x1105},
    // Direct jumps and calls.
    {k64, "eb 10", 2, InsnKind::kJump, 0x401012},
    {k64, "eb fe", 2, InsnKind::kJump, 0x401000},
    {k64, "e9 00 01 00 00", 5, InsnKind::kJump, 0x401105},
    {k64, "e9 fb ff ff ff", 5, InsnKind::kJump, 0x401000},
    {k64, "e9 00 00 00 80", 5, InsnKind::kJump, 0xffffffff80401005},
    {k64, "f2 e9 00 01 00 00", 6, InsnKind::kJump, 0x401106},  // bnd
    {k64, "e8 00 00 00 00", 5, InsnKind::kCall, 0x401005},
    {k64, "e8 fb ef ff ff", 5, InsnKind::kCall, 0x400000},
    {k64, "66 66 48 e8 00 01 00 00", 8, InsnKind::kCall, 0x401108},  // __tls_get_addr
    {k64, "f2 e8 00 01 00 00", 6, InsnKind::kCall, 0x401106},        // bnd
    {k64, "40 e8 00 01 00 00", 6, InsnKind::kCall, 0x401106},
    {k32, "eb 10", 2, InsnKind::kJump, 0x401012},
    {k32, "e9 00 00 c0 ff", 5, InsnKind::kJump, 0x1005},
    {k32, "e9 00 00 b0 ff", 5, InsnKind::kJump, 0xfff01005},  // modulo 2^32
    {k32, "e8 00 01 00 00", 5, InsnKind::kCall, 0x401105},
    {k32, "66 e9 00 01", 4, InsnKind::kJump, 0x1104},
    {k32, "66 e8 00 f0", 4, InsnKind::kCall, 0x0004},  // modulo 2^16
    {k32, "66 f2 e8 00 01", 5, InsnKind::kCall, 0x1105},
    // Indirect jumps, calls and returns.
    {k64, "ff e0", 2, InsnKind::kIndirectJump},
    {k64, "41 ff e3", 3, InsnKind::kIndirectJump},
    {k64, "3e ff e0", 3, InsnKind::kIndirectJump},              // notrack
    {k64, "f2 ff 25 00 01 00 00", 7, InsnKind::kIndirectJump},  // bnd, PLT
    {k64, "ff 24 c5 00 00 40 00", 7, InsnKind::kIndirectJump},
    {k64, "ff d0", 2, InsnKind::kIndirectCall},
    {k64, "ff 15 00 01 00 00", 6, InsnKind::kIndirectCall},
    {k64, "66 48 ff 15 00 01 00 00", 8, InsnKind::kIndirectCall},
    {k64, "ff 54 24 08", 4, InsnKind::kIndirectCall},
    {k64, "c3", 1, InsnKind::kReturn},
    {k64, "f3 c3", 2, InsnKind::kReturn},  // rep ret
    {k64, "f2 c3", 2, InsnKind::kReturn},  // bnd ret
    {k64, "66 c3", 2, InsnKind::kReturn},
    {k64, "c2 10 00", 3, InsnKind::kReturn},
    {k64, "66 48 c2 10 00", 5, InsnKind::kReturn},
    {k32, "ff e0", 2, InsnKind::kIndirectJump},
    {k32, "ff 25 00 01 00 00", 6, InsnKind::kIndirectJump},
    {k32, "65 ff 15 10 00 00 00", 7, InsnKind::kIndirectCall},  // gs:[16], the vdso
    {k32, "c3", 1, InsnKind::kReturn},
    {k32, "c2 04 00", 3, InsnKind::kReturn},
    // System calls.
    {k64, "0f 05", 2, InsnKind::kSystemCall},
    {k64, "48 0f 05", 3, InsnKind::kSystemCall},
    {k64, "0f 34", 2, InsnKind::kSystemCall},
    {k64, "cd 80", 2, InsnKind::kSystemCall},
    {k32, "cd 80", 2, InsnKind::kSystemCall},
    {k32, "0f 34", 2, InsnKind::kSystemCall},
    {k32, "0f 05", 2, InsnKind::kSystemCall},
    // Far transfers.
    {k64, "cc", 1, InsnKind::kFarTransfer},
    {k64, "cd 03", 2, InsnKind::kFarTransfer},
    {k64, "cd 81", 2, InsnKind::kFarTransfer},
    {k64, "f1", 1, InsnKind::kFarTransfer},
    {k64, "cf", 1, InsnKind::kFarTransfer},
    {k64, "48 cf", 2, InsnKind::kFarTransfer},
    {k64, "cb", 1, InsnKind::kFarTransfer},
    {k64, "48 ca 08 00", 4, InsnKind::kFarTransfer},
    {k64, "ff 28", 2, InsnKind::kFarTransfer},  // jmp far [rax]
    {k64, "48 ff 2d 00 01 00 00", 7, InsnKind::kFarTransfer},
    {k64, "ff 18", 2, InsnKind::kFarTransfer},        // call far [rax]
    {k64, "0f 07", 2, InsnKind::kFarTransfer},        // sysret
    {k64, "0f 35", 2, InsnKind::kFarTransfer},        // sysexit
    {k64, "0f 01 c1", 3, InsnKind::kFarTransfer},     // vmcall
    {k64, "0f 01 c2", 3, InsnKind::kFarTransfer},     // vmlaunch
    {k64, "0f 01 c3", 3, InsnKind::kFarTransfer},     // vmresume
    {k64, "f3 0f 01 ec", 4, InsnKind::kFarTransfer},  // uiret
    {k32, "cc", 1, InsnKind::kFarTransfer},
    {k32, "ce", 1, InsnKind::kFarTransfer},  // into
    {k32, "cf", 1, InsnKind::kFarTransfer},
    {k32, "ca 08 00", 3, InsnKind::kFarTransfer},
    {k32, "ea 00 10 40 00 33 00", 7, InsnKind::kFarTransfer},
    {k32, "66 ea 00 10 33 00", 6, InsnKind::kFarTransfer},
    {k32, "9a 00 10 40 00 33 00", 7, InsnKind::kFarTransfer},
    {k32, "ff 28", 2, InsnKind::kFarTransfer},
    // Invalid instructions.
    {k64, "06", 0, InsnKind::kOther},  // push es: 32-bit only
    {k64, "ce", 0, InsnKind::kOther},
    {k64, "9a 00 10 40 00 33 00", 0, InsnKind::kOther},
    {k64, "ea 00 10 40 00 33 00", 0, InsnKind::kOther},
    {k64, "ff d8", 0, InsnKind::kOther},  // call far of a register
    {k64, "ff ff", 0, InsnKind::kOther},
    {k64, "f0 74 10", 0, InsnKind::kOther},  // lock jcc
    {k64, "f0 c3", 0, InsnKind::kOther},
    {k64, "f0 f2 52", 0, InsnKind::kOther},     // lock push
    {k64, "8e c8", 0, InsnKind::kOther},        // mov cs, eax
    {k64, "66 0f 53 c0", 0, InsnKind::kOther},  // 66 selects nothing here
    {k64, "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66", 0, InsnKind::kOther},
};

TEST(DecodeInsn, KnowsLengthKindAndTarget) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(std::string{row.isa == k64 ? "64: " : "32: "} + row.bytes);
    const InsnFacts facts = decode_insn(row.isa, kPc, hex_bytes(row.bytes));
    EXPECT_EQ(facts.length, row.length);
    EXPECT_EQ(facts.kind, row.kind);
    EXPECT_EQ(facts.target, TraceeAddr{row.target});
  }
}

TEST(DecodeInsn, LooksOnlyAtTheFirstInstruction) {
  for (const Row& row : kRows) {
    if (row.length == 0) continue;
    SCOPED_TRACE(row.bytes);
    std::vector<std::uint8_t> bytes = hex_bytes(row.bytes);
    bytes.resize(64, 0xcc);
    const InsnFacts facts = decode_insn(row.isa, kPc, bytes);
    EXPECT_EQ(facts.length, row.length);
    EXPECT_EQ(facts.kind, row.kind);
  }
}

TEST(DecodeInsn, NeedsEveryByte) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.bytes);
    const std::vector<std::uint8_t> bytes = hex_bytes(row.bytes);
    for (std::size_t n = 0; n < row.length; ++n) {
      const InsnFacts facts = decode_insn(row.isa, kPc, std::span{bytes}.first(n));
      EXPECT_FALSE(facts.known()) << n;
      EXPECT_FALSE(facts.is_branch()) << n;
    }
  }
}

TEST(DecodeInsn, TargetsWrapAtTheEndOfTheAddressSpace) {
  const auto bytes = hex_bytes("e9 00 01 00 00");
  EXPECT_EQ(decode_insn(k64, TraceeAddr{0xfffffffffffffff0}, bytes).target, TraceeAddr{0xf5});
  EXPECT_EQ(decode_insn(k32, TraceeAddr{0xfffffff0}, bytes).target, TraceeAddr{0xf5});
}

TEST(DecodeInsn, AllConditionalJumpsAreConditional) {
  for (unsigned cc = 0; cc < 16; ++cc) {
    const std::vector<std::uint8_t> short_form{static_cast<std::uint8_t>(0x70 + cc), 5};
    const std::vector<std::uint8_t> near_form{0x0f, static_cast<std::uint8_t>(0x80 + cc), 5, 0, 0,
                                              0};
    for (const Isa isa : {k64, k32}) {
      EXPECT_EQ(decode_insn(isa, kPc, short_form).kind, InsnKind::kConditionalJump) << cc;
      EXPECT_EQ(decode_insn(isa, kPc, near_form).kind, InsnKind::kConditionalJump) << cc;
    }
  }
}

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the order of the columns.
struct SizedRow {
  const char* bytes;
  unsigned intel_length;
  std::uint64_t intel_target;
  unsigned amd_length;
  std::uint64_t amd_target;
};

// In 64-bit mode. Checked on a Zen 4 by execution, and for Intel against Zydis.
constexpr SizedRow kSizedRows[] = {
    {"66 e9 10 00 00 00", 6, 0x401016, 4, 0x1014},
    {"66 e8 10 00 00 00", 6, 0x401016, 4, 0x1014},
    {"66 0f 84 10 00 00 00", 7, 0x401017, 5, 0x1015},
    {"66 eb 10", 3, 0x401013, 3, 0x1013},
    {"66 74 10", 3, 0x401013, 3, 0x1013},
    {"66 e3 10", 3, 0x401013, 3, 0x1013},
    {"66 48 e9 10 00 00 00", 7, 0x401017, 7, 0x401017},
    {"66 48 eb 10", 4, 0x401014, 4, 0x401014},
    {"48 66 e9 10 00 00 00", 7, 0x401017, 5, 0x1015},  // REX before a legacy prefix has no effect.
};

TEST(DecodeInsn, SizesBranchesAsTheVendorDoes) {
  for (const SizedRow& row : kSizedRows) {
    SCOPED_TRACE(row.bytes);
    const auto bytes = hex_bytes(row.bytes);
    const InsnFacts intel = x86::decode(k64, NearBranchRule::kIntel, kPc, bytes);
    EXPECT_EQ(intel.length, row.intel_length);
    EXPECT_EQ(intel.target, TraceeAddr{row.intel_target});
    EXPECT_EQ(x86::zydis_length(k64, NearBranchRule::kIntel, bytes), row.intel_length);
    const InsnFacts amd = x86::decode(k64, NearBranchRule::kAmd, kPc, bytes);
    EXPECT_EQ(amd.length, row.amd_length);
    EXPECT_EQ(amd.target, TraceeAddr{row.amd_target});
    EXPECT_EQ(x86::zydis_length(k64, NearBranchRule::kAmd, bytes), row.amd_length);
  }
}

TEST(DecodeInsn, StringInstructionsRepeatWithAPrefix) {
  for (const unsigned opcode : {0x6cU, 0x6dU, 0x6eU, 0x6fU, 0xa4U, 0xa5U, 0xa6U, 0xa7U, 0xaaU,
                                0xabU, 0xacU, 0xadU, 0xaeU, 0xafU}) {
    SCOPED_TRACE(opcode);
    const auto byte = static_cast<std::uint8_t>(opcode);
    for (const Isa isa : {k64, k32}) {
      const std::vector<std::uint8_t> plain{byte};
      const std::vector<std::uint8_t> rep{0xf3, byte};
      const std::vector<std::uint8_t> repne{0xf2, 0x66, byte};
      EXPECT_FALSE(decode_insn(isa, kPc, plain).repeats);
      EXPECT_TRUE(decode_insn(isa, kPc, rep).repeats);
      EXPECT_TRUE(decode_insn(isa, kPc, repne).repeats);
      EXPECT_FALSE(decode_insn(isa, kPc, rep).is_branch());
    }
  }
  EXPECT_TRUE(decode_insn(k64, kPc, hex_bytes("f3 48 a5")).repeats);
}

TEST(DecodeInsn, OtherInstructionsDoNotRepeat) {
  for (const char* bytes : {"f3 c3", "f3 90", "f3 0f 1e fa", "f3 a8 01", "f2 0f 10 00",
                            "f3 0f a4 00", "f2 e9 00 00 00 00", "f3 ab f3"}) {
    const InsnFacts facts = decode_insn(k64, kPc, hex_bytes(bytes));
    EXPECT_EQ(facts.repeats, std::string_view{bytes} == "f3 ab f3") << bytes;
  }
}

TEST(DecodeInsn, MayBeCalledFromManyThreads) {
  std::vector<unsigned> wrong(4);
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (unsigned& count : wrong) {
    threads.emplace_back([&count] {
      for (int round = 0; round < 20; ++round) {
        for (const Row& row : kRows) {
          if (decode_insn(row.isa, kPc, hex_bytes(row.bytes)).length != row.length) ++count;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const unsigned count : wrong) EXPECT_EQ(count, 0U);
}

}  // namespace
}  // namespace backtrail::arch
