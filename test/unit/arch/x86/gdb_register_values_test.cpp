// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "arch/x86/gdb_registers.hpp"
#include "test/unit/arch/hex_bytes.hpp"
#include "test/unit/arch/register_bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

/// Returns n, n+1, n+2 ..., so that each byte of a register differs from its neighbours.
Bytes counted(std::size_t count, unsigned first) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

class Values : public ::testing::Test {
 protected:
  explicit Values(Isa isa = Isa::kAmd64, const XsaveLayout& layout = intel_xsave_layout(kXcr0))
      : layout_{layout}, set_{isa, layout} {
    raw_.xsave.resize(layout.size_bytes);
    set_xstate_bv(kXcr0);
    put(raw_.xsave, 0, 0x37f, 2);
    put(raw_.xsave, kMxcsrAt, 0x1f80, 4);
    put(raw_.xsave, kMxcsrAt + 4, 0xffff, 4);
  }

  std::size_t number(const std::string& name) const {
    const auto found = set_.find(name);
    EXPECT_TRUE(found) << name;
    return found.value_or(0);
  }
  Bytes bytes_of(const std::string& name) const {
    return set_.read_one(number(name), raw_).value();
  }
  std::uint64_t value_of(const std::string& name) const {
    const Bytes bytes = bytes_of(name);
    return get(bytes, std::min<std::size_t>(bytes.size(), 8));
  }
  void write(const std::string& name, std::uint64_t value) {
    Bytes bytes(set_.registers()[number(name)].bits / 8);
    put(bytes, 0, value, std::min<std::size_t>(bytes.size(), 8));
    write(name, bytes);
  }
  void write(const std::string& name, const Bytes& bytes) {
    EXPECT_TRUE(set_.write_one(number(name), bytes, raw_)) << name;
  }

  void set_xstate_bv(std::uint64_t bits) { put(raw_.xsave, kXstateBvAt, bits, 8); }
  std::uint64_t xstate_bv() const { return get(std::span{raw_.xsave}.subspan(kXstateBvAt), 8); }
  void copy_in(std::size_t at, const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), raw_.xsave.begin() + static_cast<std::ptrdiff_t>(at));
  }
  Bytes copy_out(std::size_t at, std::size_t count) const {
    const auto first = raw_.xsave.begin() + static_cast<std::ptrdiff_t>(at);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

  XsaveLayout layout_;
  GdbRegisterSet set_;
  RawRegisters raw_;
};

class I386Values : public Values {
 protected:
  I386Values() : Values{Isa::kI386} {}
};

class AmdValues : public Values {
 protected:
  AmdValues() : Values{Isa::kAmd64, amd_layout()} {}
};

TEST_F(Values, OfGeneralRegistersAreTheKernelsWords) {
  for (std::size_t i = 0; i < kUserRegCount; ++i) raw_.user.words[i] = 0x1122334455660000 + i;
  const std::pair<const char*, UserReg> full[] = {
      {"rax", UserReg::kRax},        {"rbx", UserReg::kRbx},       {"rcx", UserReg::kRcx},
      {"rdx", UserReg::kRdx},        {"rsi", UserReg::kRsi},       {"rdi", UserReg::kRdi},
      {"rbp", UserReg::kRbp},        {"rsp", UserReg::kRsp},       {"r8", UserReg::kR8},
      {"r9", UserReg::kR9},          {"r10", UserReg::kR10},       {"r11", UserReg::kR11},
      {"r12", UserReg::kR12},        {"r13", UserReg::kR13},       {"r14", UserReg::kR14},
      {"r15", UserReg::kR15},        {"rip", UserReg::kRip},       {"orig_rax", UserReg::kOrigRax},
      {"fs_base", UserReg::kFsBase}, {"gs_base", UserReg::kGsBase}};
  for (const auto& [name, source] : full) EXPECT_EQ(value_of(name), raw_.user[source]) << name;
  const std::pair<const char*, UserReg> narrow[] = {
      {"eflags", UserReg::kEflags}, {"cs", UserReg::kCs}, {"ss", UserReg::kSs},
      {"ds", UserReg::kDs},         {"es", UserReg::kEs}, {"fs", UserReg::kFs},
      {"gs", UserReg::kGs}};
  for (const auto& [name, source] : narrow) {
    EXPECT_EQ(value_of(name), raw_.user[source] & 0xffffffff) << name;
  }
}

TEST_F(Values, OfGeneralRegistersCanBeWritten) {
  write("r12", 0x8877665544332211);
  EXPECT_EQ(raw_.user[UserReg::kR12], 0x8877665544332211U);
  write("orig_rax", ~std::uint64_t{0});
  EXPECT_EQ(raw_.user[UserReg::kOrigRax], ~std::uint64_t{0});
  write("eflags", 0x80000246);
  EXPECT_EQ(raw_.user[UserReg::kEflags], 0x80000246U);
}

TEST_F(I386Values, OfGeneralRegistersAreLowHalves) {
  raw_.user[UserReg::kRax] = 0xffffffffffffffda;  // -ENOSYS
  raw_.user[UserReg::kRip] = 0xf7fd0549;
  raw_.user[UserReg::kOrigRax] = 0xffffffffffffffff;
  EXPECT_EQ(value_of("eax"), 0xffffffdaU);
  EXPECT_EQ(value_of("eip"), 0xf7fd0549U);
  EXPECT_EQ(value_of("orig_eax"), 0xffffffffU);
}

TEST_F(I386Values, KeepTheSignOfSystemCallNumberAndResult) {
  write("orig_eax", 0xffffffff);
  EXPECT_EQ(raw_.user[UserReg::kOrigRax], ~std::uint64_t{0});
  write("eax", 0xfffffe00);  // -ERESTARTSYS
  EXPECT_EQ(raw_.user[UserReg::kRax], 0xfffffffffffffe00U);
  write("eax", 0x7fffffff);
  EXPECT_EQ(raw_.user[UserReg::kRax], 0x7fffffffU);
  write("esp", 0xffffd000);
  EXPECT_EQ(raw_.user[UserReg::kRsp], 0xffffd000U);
  write("eip", 0xf7fd0549);
  EXPECT_EQ(raw_.user[UserReg::kRip], 0xf7fd0549U);
}

TEST_F(Values, OfTheX87StackAreTenBytesEach) {
  for (unsigned i = 0; i < 8; ++i) {
    copy_in(32 + 16 * i, counted(10, 16 * i));
    EXPECT_EQ(bytes_of("st" + std::to_string(i)), counted(10, 16 * i));
  }
  write("st3", counted(10, 0x80));
  EXPECT_EQ(copy_out(32 + 16 * 3, 10), counted(10, 0x80));
  EXPECT_EQ(copy_out(32 + 16 * 3 + 10, 6), Bytes(6));
}

TEST_F(Values, OfX87ControlRegistersComeFromTheirFields) {
  put(raw_.xsave, 0, 0x027f, 2);
  put(raw_.xsave, 2, 0x3041, 2);
  put(raw_.xsave, 6, 0xfdd9, 2);  // The upper five bits are not part of fop.
  put(raw_.xsave, 8, 0x00007f1234567890, 8);
  put(raw_.xsave, 16, 0x00007ffcdef01234, 8);
  EXPECT_EQ(value_of("fctrl"), 0x27fU);
  EXPECT_EQ(value_of("fstat"), 0x3041U);
  EXPECT_EQ(value_of("fop"), 0x5d9U);
  EXPECT_EQ(value_of("fioff"), 0x34567890U);
  EXPECT_EQ(value_of("fiseg"), 0x7f12U);
  EXPECT_EQ(value_of("fooff"), 0xdef01234U);
  EXPECT_EQ(value_of("foseg"), 0x7ffcU);
}

TEST_F(Values, OfX87ControlRegistersCanBeWritten) {
  write("fctrl", 0x27f);
  write("fstat", 0x4700);
  write("fop", 0x1234);
  write("fioff", 0x11223344);
  write("fiseg", 0x7f55);
  write("fooff", 0x55667788);
  write("foseg", 0x7f66);
  EXPECT_EQ(copy_out(0, 4), hex_bytes("7f 02 00 47"));
  EXPECT_EQ(copy_out(6, 2), hex_bytes("34 02"));
  EXPECT_EQ(copy_out(8, 16), hex_bytes("44 33 22 11 55 7f 00 00 88 77 66 55 66 7f 00 00"));
}

TEST_F(I386Values, HaveSelectorsOf16Bits) {
  put(raw_.xsave, 8, 0xabcd0023f7fd0549, 8);
  put(raw_.xsave, 16, 0xabcd002bffffd000, 8);
  EXPECT_EQ(value_of("fioff"), 0xf7fd0549U);
  EXPECT_EQ(value_of("fiseg"), 0x23U);
  EXPECT_EQ(value_of("fooff"), 0xffffd000U);
  EXPECT_EQ(value_of("foseg"), 0x2bU);
  write("fiseg", 0x1b);
  EXPECT_EQ(copy_out(12, 4), hex_bytes("1b 00 cd ab"));
}

// Tags: 0 valid, 1 zero, 2 special, 3 empty. The abridged byte and the full word are indexed by
// physical register; st(i) is physical (top + i) mod 8.
TEST_F(Values, OfTheTagWordAreTakenFromTheRegisters) {
  const struct {
    const char* bytes;
    unsigned tag;
  } kinds[] = {
      {"00 00 00 00 00 00 00 80 ff 3f", 0},  // 1.0
      {"00 00 00 00 00 00 00 80 ff bf", 0},  // -1.0
      {"00 00 00 00 00 00 00 00 00 00", 1},  // 0.0
      {"00 00 00 00 00 00 00 00 00 80", 1},  // -0.0
      {"01 00 00 00 00 00 00 00 00 00", 2},  // denormal
      {"00 00 00 00 00 00 00 80 00 00", 2},  // pseudo-denormal
      {"00 00 00 00 00 00 00 80 ff 7f", 2},  // infinity
      {"00 00 00 00 00 00 00 c0 ff ff", 2},  // NaN
      {"00 00 00 00 00 00 00 40 ff 3f", 2},  // unnormal
  };
  for (unsigned top = 0; top < 8; ++top) {
    for (const auto& kind : kinds) {
      put(raw_.xsave, 2, top << 11, 2);
      put(raw_.xsave, 4, std::uint64_t{1} << top, 1);  // Only st0 is in use.
      copy_in(32, hex_bytes(kind.bytes));
      const std::uint64_t expected =
          (0xffffU & ~(3U << (2 * top))) | (std::uint64_t{kind.tag} << (2 * top));
      EXPECT_EQ(value_of("ftag"), expected) << kind.bytes << " top " << top;
    }
  }
}

TEST_F(Values, OfTheTagWordFollowTheStackTop) {
  put(raw_.xsave, 2, 6U << 11, 2);
  put(raw_.xsave, 4, 0xc0, 1);                              // Physical 6 and 7 are st0 and st1.
  copy_in(32, hex_bytes("00 00 00 00 00 00 00 80 ff 3f"));  // st0 = 1.0
  copy_in(48, Bytes(10));                                   // st1 = 0.0
  EXPECT_EQ(value_of("ftag"), 0x4fffU);
}

TEST_F(Values, OfTheTagWordAreAbridgedWhenWritten) {
  write("ftag", 0x4ffe);
  EXPECT_EQ(raw_.xsave[4], 0xc1);
  write("ftag", 0xffff);
  EXPECT_EQ(raw_.xsave[4], 0);
}

TEST_F(Values, OfSseRegistersLieInTheLegacyArea) {
  for (unsigned i = 0; i < 16; ++i) {
    copy_in(160 + 16 * i, counted(16, 7 * i));
    EXPECT_EQ(bytes_of("xmm" + std::to_string(i)), counted(16, 7 * i));
  }
  put(raw_.xsave, kMxcsrAt, 0x1fa0, 4);
  EXPECT_EQ(value_of("mxcsr"), 0x1fa0U);
}

TEST_F(Values, OfMxcsrKeepToWhatTheCpuHas) {
  write("mxcsr", 0xffffffff);
  EXPECT_EQ(copy_out(kMxcsrAt, 4), hex_bytes("ff ff 00 00"));
  put(raw_.xsave, kMxcsrAt + 4, 0, 4);  // No mask, as on old CPUs without DAZ.
  write("mxcsr", 0xffffffff);
  EXPECT_EQ(copy_out(kMxcsrAt, 4), hex_bytes("bf ff 00 00"));
  EXPECT_EQ(copy_out(kMxcsrAt + 4, 4), Bytes(4));
}

struct Place {
  const char* name;
  std::size_t intel;
  std::size_t amd;
  std::size_t bytes;
};
constexpr Place kPlaces[] = {
    {"ymm0h", 576, 576, 16},   {"ymm15h", 816, 816, 16},   {"k0", 1088, 832, 8},
    {"k7", 1144, 888, 8},      {"zmm0h", 1152, 896, 32},   {"zmm15h", 1632, 1376, 32},
    {"xmm16", 1664, 1408, 16}, {"ymm16h", 1680, 1424, 16}, {"zmm16h", 1696, 1440, 32},
    {"xmm31", 2624, 2368, 16}, {"ymm31h", 2640, 2384, 16}, {"zmm31h", 2656, 2400, 32},
    {"pkru", 2688, 2432, 4},
};

TEST_F(Values, OfExtendedRegistersLieWhereTheLayoutSays) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    copy_in(place.intel, counted(place.bytes, 0x21));
    EXPECT_EQ(bytes_of(place.name), counted(place.bytes, 0x21));
    write(place.name, counted(place.bytes, 0x77));
    EXPECT_EQ(copy_out(place.intel, place.bytes), counted(place.bytes, 0x77));
  }
}

TEST_F(AmdValues, OfExtendedRegistersLieWhereTheLayoutSays) {
  for (const Place& place : kPlaces) {
    SCOPED_TRACE(place.name);
    copy_in(place.amd, counted(place.bytes, 0x21));
    EXPECT_EQ(bytes_of(place.name), counted(place.bytes, 0x21));
    write(place.name, counted(place.bytes, 0x77));
    EXPECT_EQ(copy_out(place.amd, place.bytes), counted(place.bytes, 0x77));
  }
}

TEST_F(Values, OfUnusedComponentsAreInitial) {
  std::fill(raw_.xsave.begin(), raw_.xsave.end(), std::uint8_t{0xee});
  set_xstate_bv(0);
  EXPECT_EQ(value_of("fctrl"), 0x37fU);
  EXPECT_EQ(value_of("ftag"), 0xffffU);
  EXPECT_EQ(value_of("mxcsr"), 0x1f80U);
  for (const char* name : {"fstat", "fiseg", "fioff", "foseg", "fooff", "fop", "st0", "st7", "xmm0",
                           "xmm15", "ymm0h", "k3", "zmm0h", "xmm16", "zmm31h", "pkru"}) {
    const Bytes bytes = bytes_of(name);
    EXPECT_EQ(bytes, Bytes(bytes.size())) << name;
  }
}

TEST_F(Values, OfMxcsrCountWithSseOrAvx) {
  put(raw_.xsave, kMxcsrAt, 0x1fa0, 4);
  set_xstate_bv(2);
  EXPECT_EQ(value_of("mxcsr"), 0x1fa0U);
  set_xstate_bv(4);
  EXPECT_EQ(value_of("mxcsr"), 0x1fa0U);
  set_xstate_bv(1);
  EXPECT_EQ(value_of("mxcsr"), 0x1f80U);
}

TEST_F(Values, WrittenToAnUnusedComponentInitialiseTheRest) {
  std::fill(raw_.xsave.begin(), raw_.xsave.begin() + 512, std::uint8_t{0xee});
  std::fill(raw_.xsave.begin() + 576, raw_.xsave.end(), std::uint8_t{0xee});
  set_xstate_bv(0);
  write("ymm3h", 1);
  EXPECT_EQ(xstate_bv(), 4U);
  EXPECT_EQ(value_of("ymm3h"), 1U);
  EXPECT_EQ(bytes_of("ymm4h"), Bytes(16));
  EXPECT_EQ(value_of("mxcsr"), 0x1f80U);  // The stored value is valid because AVX is in use.
  write("st1", counted(10, 1));
  EXPECT_EQ(xstate_bv(), 5U);
  EXPECT_EQ(value_of("fctrl"), 0x37fU);
  EXPECT_EQ(value_of("ftag"), 0xffffU);
  EXPECT_EQ(bytes_of("st0"), Bytes(10));
  EXPECT_EQ(value_of("mxcsr"), 0x1f80U);
  write("k1", 5);
  write("pkru", 6);
  EXPECT_EQ(xstate_bv(), 0x225U);
  EXPECT_EQ(value_of("k0"), 0U);
  EXPECT_EQ(value_of("xmm0"), 0U);
  EXPECT_EQ(value_of("zmm0h"), 0U);
}

TEST_F(Values, OfMxcsrWrittenFirstUseSse) {
  std::fill(raw_.xsave.begin() + 160, raw_.xsave.begin() + 416, std::uint8_t{0xee});
  set_xstate_bv(0);
  write("mxcsr", 0x1fa0);
  EXPECT_EQ(xstate_bv(), 2U);
  EXPECT_EQ(value_of("mxcsr"), 0x1fa0U);
  EXPECT_EQ(bytes_of("xmm15"), Bytes(16));
}

TEST_F(Values, ThatAreInitialAlreadyDoNotUseTheComponent) {
  set_xstate_bv(0);
  write("ymm0h", 0);
  write("fctrl", 0x37f);
  write("ftag", 0xffff);
  EXPECT_EQ(xstate_bv(), 0U);
}

TEST_F(Values, OfABareFxsaveImageNeedNoHeader) {
  raw_.xsave.resize(512);
  copy_in(160, counted(16, 1));
  EXPECT_EQ(bytes_of("xmm0"), counted(16, 1));
  EXPECT_EQ(value_of("ymm0h"), 0U);
  write("xmm1", counted(16, 9));
  EXPECT_EQ(copy_out(176, 16), counted(16, 9));
  write("st0", counted(10, 3));
  EXPECT_EQ(copy_out(32, 10), counted(10, 3));
}

TEST_F(Values, WithoutRoomAreRefused) {
  raw_.xsave.resize(832);  // Room for AVX only.
  const Result<void> result = set_.write_one(number("k0"), Bytes(8, 1), raw_);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().is(TraceErrc::kInvalidArgument));
  EXPECT_EQ(value_of("k0"), 0U);
  EXPECT_EQ(raw_.xsave.size(), 832U);
}

TEST_F(Values, OfAnySizeOfAreaAreSafe) {
  for (const Isa isa : {Isa::kAmd64, Isa::kI386}) {
    const GdbRegisterSet set{isa, layout_};
    const Bytes ones(set.block_bytes(), 0xff);
    for (std::size_t size = 0; size <= layout_.size_bytes + 8; size += size < 700 ? 1 : 61) {
      RawRegisters raw;
      raw.xsave.assign(size, 0xff);
      EXPECT_EQ(set.to_gdb(raw).size(), set.block_bytes());
      set.from_gdb(ones, raw);
      EXPECT_EQ(raw.xsave.size(), size);
    }
  }
}

TEST_F(Values, AreCheckedForNumberAndSize) {
  const auto count = set_.registers().size();
  ASSERT_FALSE(set_.read_one(count, raw_));
  EXPECT_TRUE(set_.read_one(count, raw_).error().is(TraceErrc::kInvalidArgument));
  EXPECT_FALSE(set_.write_one(count, Bytes(8), raw_));
  EXPECT_FALSE(set_.write_one(0, Bytes(4), raw_));
  EXPECT_FALSE(set_.write_one(0, Bytes{}, raw_));
}

}  // namespace
}  // namespace backtrail::arch::x86
