// Which function an address belongs to, from the symbols that compilers and people write.
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
  EXPECT_EQ(demangled("_ZN1a1bEi@plt"), "a::b(int)@plt");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
  EXPECT_LT(demangled(std::string(100000, 'x')).size(), kMaxNameBytes + 10);
}

}  // namespace
}  // namespace backtrail::decoder
