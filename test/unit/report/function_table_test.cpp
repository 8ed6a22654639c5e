// SPDX-License-Identifier: Apache-2.0
// Tests function lookup with symbols as compilers and people write them.
#include "decoder/symbols/function_table.hpp"

#include <gtest/gtest.h>

#include "decoder/symbols/demangle.hpp"

namespace backtrail::decoder {
namespace {

std::string name_at(const FunctionTable& table, std::uint64_t address) {
  const FunctionTable::Entry* entry = table.find(address);
  if (entry == nullptr) return "none";
  return entry->name.empty() ? "nameless" : entry->name;
}

const std::vector<CodeRange> code{{0x1000, 0x2000}};

TEST(FunctionTable, SizesBoundFunctions) {
  const FunctionTable table{{{0x1000, 0x10, "a"}, {0x1020, 0x10, "b"}}, {}, code};
  EXPECT_EQ(name_at(table, 0xfff), "none");
  EXPECT_EQ(name_at(table, 0x100f), "a");
  EXPECT_EQ(name_at(table, 0x1010), "none");
  EXPECT_EQ(name_at(table, 0x1020), "b");
}

TEST(FunctionTable, WithoutSizeAFunctionReachesTheNextOne) {
  const FunctionTable table{{{0x1000, 0, "a"}, {0x1020, 0, "b"}}, {}, code};
  EXPECT_EQ(name_at(table, 0x101f), "a");
  EXPECT_EQ(name_at(table, 0x1fff), "b");
  EXPECT_EQ(name_at(table, 0x2000), "none");
}

TEST(FunctionTable, LabelsWithinAFunctionAreNone) {
  const FunctionTable table{{{0x1000, 0x40, "a"}, {0x1010, 0, "label"}}, {}, code};
  EXPECT_EQ(name_at(table, 0x1018), "a");
}

TEST(FunctionTable, TheNameThatPeopleKnowIsTaken) {
  const FunctionTable table{
      {{0x1000, 8, "__open", 6}, {0x1000, 8, "open", 6}, {0x1000, 8, "local", 4}}, {}, code};
  EXPECT_EQ(name_at(table, 0x1000), "open");
}

TEST(FunctionTable, SymbolsOfDataAreNoFunctions) {
  const FunctionTable table{{{0x3000, 8, "data"}}, {}, code};
  EXPECT_EQ(name_at(table, 0x3000), "none");
}

TEST(FunctionTable, UnwindTablesBoundWhatHasNoSymbol) {
  const FunctionTable table{{{0x1000, 0x10, "a"}}, {0x1000, 0x1010, 0x1030, 0x5000}, code};
  EXPECT_EQ(name_at(table, 0x1008), "a");
  EXPECT_EQ(name_at(table, 0x102f), "nameless");
  EXPECT_EQ(table.find(0x102f)->start, 0x1010U);
  EXPECT_EQ(table.find(0x1fff)->start, 0x1030U);
}

TEST(FunctionTable, TheColdPartBelongsToItsFunction) {
  const FunctionTable table{{{0x1000, 0x10, "f"}, {0x1800, 0x10, "f.cold"}}, {}, code};
  EXPECT_EQ(table.entries()[table.find(0x1800)->owner].name, "f");
}

TEST(FunctionTable, OfTwoFunctionsOfThatNameNeither) {
  const FunctionTable table{
      {{0x1000, 0x10, "f"}, {0x1100, 0x10, "f"}, {0x1800, 0x10, "f.cold"}}, {}, code};
  EXPECT_EQ(table.entries()[table.find(0x1800)->owner].name, "f.cold");
}

TEST(Demangle, NamesAreAsTheirSourceHasThem) {
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_ZN1a1bEi"), "a::b(int)");
  EXPECT_EQ(demangled("_ZN1a1bEi.part.0"), "a::b(int) [.part.0]");
  EXPECT_EQ(demangled("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(demangled("_ZN34_$LT$t..Sq$u20$as$u20$t..Shape$GT$4area17h8803e5e9459df680E"),
            "<t::Sq as t::Shape>::area");
  EXPECT_EQ(demangled("_ZN1t4main28_$u7b$$u7b$closure$u7d$$u7d$17h040df9b2d6e50383E.llvm.77"),
            "t::main::{{closure}} [.llvm.77]");
  EXPECT_EQ(demangled("_ZN4core3ops8function6FnOnce40call_once$u7b$$u7b$vtable.shim$u7d$$u7d$"
                      "17h8803e5e9459df680E"),
            "core::ops::function::FnOnce::call_once{{vtable.shim}}");
  EXPECT_EQ(demangled("_ZN68_$LT$$RF$$u5b$T$u5d$$u20$as$u20$core..iter..traits..IntoIterator$GT$"
                      "9into_iter17h8803e5e9459df680E"),
            "<&[T] as core::iter::traits::IntoIterator>::into_iter");
  // A name of another language may look similar, but its last part is no hash.
  EXPECT_EQ(demangled("_ZN1a17h8803e5e9459df68xEv"), "a::h8803e5e9459df68x()");
  EXPECT_EQ(demangled("_RNCNvCsjMaewn57Afh_1t4main0"), "t::main::{closure#0}");
  EXPECT_EQ(demangled("_RNvXCsjMaewn57Afh_1tNtB2_2SqNtB2_5Shape4area"),
            "<t::Sq as t::Shape>::area");
  EXPECT_EQ(demangled("_RNvCs3mSbOeLENLV_4test4main"), "test::main");
  EXPECT_EQ(demangled("_RNvNtCsjrHSEGnQ3l9_3std2io4copy.llvm.12"), "std::io::copy [.llvm.12]");
  EXPECT_EQ(demangled("_Rnonsense"), "_Rnonsense");
  EXPECT_EQ(demangled("_ZN1a1bEi@plt"), "a::b(int)@plt");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
  EXPECT_LT(demangled(std::string(100000, 'x')).size(), kMaxNameBytes + 10);
}

/// Each tuple contains the previous one twice: 2^30 names in 300 bytes.
TEST(Demangle, AShortSymbolOfALongNameIsCut) {
  std::string symbol = "_RINvC1a1bh";
  std::size_t last = symbol.size() - 3;  // Backward references count from after the prefix.
  const auto base62 = [](std::size_t value) {
    constexpr std::string_view kDigits =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string digits{"_"};
    if (value == 0) return digits;
    for (--value;; value /= kDigits.size()) {
      digits.insert(digits.begin(), kDigits[value % kDigits.size()]);
      if (value < kDigits.size()) return digits;
    }
  };
  for (int i = 0; i < 30; ++i) {
    const std::size_t begin = symbol.size() - 2;
    symbol += "TB" + base62(last) + "B" + base62(last) + "E";
    last = begin;
  }
  const std::string name = demangled(symbol + "E");
  EXPECT_EQ(name.substr(0, 16), "a::b::<u8, (u8, ");
  EXPECT_EQ(name.size(), kMaxNameBytes + 3);
}

}  // namespace
}  // namespace backtrail::decoder
