// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "arch/x86/gdb_registers.hpp"
#include "test/unit/arch/hex_bytes.hpp"
#include "test/unit/arch/register_bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

RawRegisters random_raw(std::mt19937_64& random, const XsaveLayout& layout) {
  RawRegisters raw;
  for (std::uint64_t& word : raw.user.words) word = random();
  raw.xsave.resize(layout.size_bytes);
  for (std::uint8_t& byte : raw.xsave) byte = static_cast<std::uint8_t>(random());
  put(raw.xsave, kMxcsrAt, random() & 0xffff, 4);
  put(raw.xsave, kMxcsrAt + 4, 0xffff, 4);
  put(raw.xsave, kXstateBvAt, random() & kXcr0, 8);
  return raw;
}

TEST(RegisterBlock, WrittenBackUnchangedChangesNothing) {
  std::mt19937_64 random{1};
  for (const XsaveLayout& layout : {intel_xsave_layout(kXcr0), amd_layout()}) {
    for (const Isa isa : {Isa::kAmd64, Isa::kI386}) {
      const GdbRegisterSet set{isa, layout};
      for (int round = 0; round < 50; ++round) {
        const RawRegisters before = random_raw(random, layout);
        RawRegisters after = before;
        set.from_gdb(set.to_gdb(before), after);
        EXPECT_EQ(after.user, before.user);
        EXPECT_EQ(after.xsave, before.xsave);
      }
    }
  }
}

/// Clears bits that no CPU keeps, because they do not survive.
void make_plausible(const GdbRegisterSet& set, Bytes& block) {
  const auto fix = [&](const char* name, std::uint64_t mask) {
    const GdbRegister& r = set.registers()[*set.find(name)];
    const std::uint64_t value = get(std::span{block}.subspan(r.offset), r.bits / 8);
    put(block, r.offset, value & mask, r.bits / 8);
  };
  for (const char* name : {"fctrl", "fstat"}) fix(name, 0xffff);
  fix("fop", 0x7ff);
  fix("mxcsr", 0xffff);
  if (set.isa() == Isa::kI386) {
    fix("fiseg", 0xffff);
    fix("foseg", 0xffff);
  }
  // Every stack register is 1.0, so that every tag is valid.
  for (unsigned i = 0; i < 8; ++i) {
    const GdbRegister& r = set.registers()[*set.find("st" + std::to_string(i))];
    const Bytes one = hex_bytes("00 00 00 00 00 00 00 80 ff 3f");
    std::copy(one.begin(), one.end(), block.begin() + static_cast<std::ptrdiff_t>(r.offset));
  }
  const GdbRegister& ftag = set.registers()[*set.find("ftag")];
  put(block, ftag.offset, 0, 4);
}

TEST(RegisterBlock, IsReadBackAsWritten) {
  std::mt19937_64 random{2};
  for (const XsaveLayout& layout : {intel_xsave_layout(kXcr0), amd_layout()}) {
    for (const Isa isa : {Isa::kAmd64, Isa::kI386}) {
      const GdbRegisterSet set{isa, layout};
      for (int round = 0; round < 50; ++round) {
        RawRegisters raw = random_raw(random, layout);
        Bytes block(set.block_bytes());
        for (std::uint8_t& byte : block) byte = static_cast<std::uint8_t>(random());
        make_plausible(set, block);
        set.from_gdb(block, raw);
        EXPECT_EQ(set.to_gdb(raw), block);
      }
    }
  }
}

TEST(RegisterBlock, ShorterSetsTheRegistersItCovers) {
  const GdbRegisterSet set{Isa::kAmd64, intel_xsave_layout(kXcr0)};
  RawRegisters raw;
  raw.xsave.resize(2696);
  const Bytes block(20, 0xff);  // Covers rax, rbx and half of rcx.
  set.from_gdb(block, raw);
  EXPECT_EQ(raw.user[UserReg::kRax], ~std::uint64_t{0});
  EXPECT_EQ(raw.user[UserReg::kRbx], ~std::uint64_t{0});
  EXPECT_EQ(raw.user[UserReg::kRcx], 0U);
}

TEST(RegisterBlock, LongerIsCutOff) {
  const GdbRegisterSet set{Isa::kAmd64, intel_xsave_layout(3)};
  RawRegisters raw;
  raw.xsave.resize(576);
  Bytes block(set.block_bytes() + 100, 0);
  block[0] = 9;
  set.from_gdb(block, raw);
  EXPECT_EQ(raw.user[UserReg::kRax], 9U);
}

TEST(RegisterBlock, AgreesWithSingleReads) {
  std::mt19937_64 random{3};
  const XsaveLayout layout = intel_xsave_layout(kXcr0);
  for (const Isa isa : {Isa::kAmd64, Isa::kI386}) {
    const GdbRegisterSet set{isa, layout};
    const RawRegisters raw = random_raw(random, layout);
    const Bytes block = set.to_gdb(raw);
    for (std::size_t i = 0; i < set.registers().size(); ++i) {
      const GdbRegister& r = set.registers()[i];
      const auto first = block.begin() + static_cast<std::ptrdiff_t>(r.offset);
      EXPECT_EQ(set.read_one(i, raw).value(), Bytes(first, first + r.bits / 8)) << r.name;
    }
  }
}

/// gdb writes all registers when one has changed, with the tag word that it read.
TEST(RegisterBlock, WithAChangedStackRegisterKeepsTheTags) {
  const GdbRegisterSet set{Isa::kAmd64, intel_xsave_layout(kXcr0)};
  RawRegisters raw;
  raw.xsave.resize(2696);
  put(raw.xsave, kXstateBvAt, 1, 8);
  put(raw.xsave, 4, 1, 1);  // st0 is in use and 0.0; top is 0.
  Bytes block = set.to_gdb(raw);
  const Bytes one = hex_bytes("00 00 00 00 00 00 00 80 ff 3f");
  const std::size_t at = set.registers()[*set.find("st0")].offset;
  std::copy(one.begin(), one.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
  set.from_gdb(block, raw);
  EXPECT_EQ(raw.xsave[4], 1);
  EXPECT_EQ(set.read_one(*set.find("ftag"), raw).value(), hex_bytes("fc ff 00 00"));
}

}  // namespace
}  // namespace backtrail::arch::x86
