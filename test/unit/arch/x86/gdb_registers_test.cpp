// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/gdb_registers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <pugixml.hpp>

namespace backtrail::arch::x86 {
namespace {

constexpr std::uint64_t kSseOnly = 0x3;
constexpr std::uint64_t kAvx = 0x7;
constexpr std::uint64_t kAvx512 = 0xe7;
constexpr std::uint64_t kAvx512Pkru = 0x2e7;
constexpr std::uint64_t kEverything = 0x2ff;

GdbRegisterSet make(Isa isa, std::uint64_t xcr0) {
  return GdbRegisterSet{isa, intel_xsave_layout(xcr0)};
}

struct Expected {
  std::size_t number;
  const char* name;
  std::uint32_t bits;
  const char* type;
  const char* group;
};

void expect_registers(const GdbRegisterSet& set, std::span<const Expected> rows) {
  for (const Expected& row : rows) {
    SCOPED_TRACE(row.name);
    ASSERT_LT(row.number, set.registers().size());
    const GdbRegister& r = set.registers()[row.number];
    EXPECT_EQ(r.name, row.name);
    EXPECT_EQ(r.bits, row.bits);
    EXPECT_EQ(r.type, row.type);
    EXPECT_EQ(r.group, row.group);
    EXPECT_EQ(set.find(row.name), row.number);
  }
}

// Numbers, sizes, types and groups of gdbserver 13.1.
TEST(GdbRegisterSet, NumbersAmd64RegistersAsGdbserverDoes) {
  const Expected rows[] = {
      {0, "rax", 64, "int64", ""},
      {1, "rbx", 64, "int64", ""},
      {6, "rbp", 64, "data_ptr", ""},
      {7, "rsp", 64, "data_ptr", ""},
      {8, "r8", 64, "int64", ""},
      {15, "r15", 64, "int64", ""},
      {16, "rip", 64, "code_ptr", ""},
      {17, "eflags", 32, "i386_eflags", ""},
      {18, "cs", 32, "int32", ""},
      {23, "gs", 32, "int32", ""},
      {24, "st0", 80, "i387_ext", ""},
      {31, "st7", 80, "i387_ext", ""},
      {32, "fctrl", 32, "int", "float"},
      {33, "fstat", 32, "int", "float"},
      {34, "ftag", 32, "int", "float"},
      {35, "fiseg", 32, "int", "float"},
      {36, "fioff", 32, "int", "float"},
      {37, "foseg", 32, "int", "float"},
      {38, "fooff", 32, "int", "float"},
      {39, "fop", 32, "int", "float"},
      {40, "xmm0", 128, "vec128", ""},
      {55, "xmm15", 128, "vec128", ""},
      {56, "mxcsr", 32, "i386_mxcsr", "vector"},
      {57, "orig_rax", 64, "int", ""},
      {58, "fs_base", 64, "int", ""},
      {59, "gs_base", 64, "int", ""},
      {60, "ymm0h", 128, "uint128", ""},
      {75, "ymm15h", 128, "uint128", ""},
      {76, "xmm16", 128, "vec128", ""},
      {91, "xmm31", 128, "vec128", ""},
      {92, "ymm16h", 128, "uint128", ""},
      {107, "ymm31h", 128, "uint128", ""},
      {108, "k0", 64, "uint64", ""},
      {115, "k7", 64, "uint64", ""},
      {116, "zmm0h", 256, "v2ui128", ""},
      {147, "zmm31h", 256, "v2ui128", ""},
      {148, "pkru", 32, "uint32", ""},
  };
  const GdbRegisterSet set = make(Isa::kAmd64, kAvx512Pkru);
  EXPECT_EQ(set.registers().size(), 149U);
  expect_registers(set, rows);
}

TEST(GdbRegisterSet, NumbersI386RegistersAsGdbserverDoes) {
  const Expected rows[] = {
      {0, "eax", 32, "int32", ""},       {1, "ecx", 32, "int32", ""},
      {2, "edx", 32, "int32", ""},       {3, "ebx", 32, "int32", ""},
      {4, "esp", 32, "data_ptr", ""},    {5, "ebp", 32, "data_ptr", ""},
      {6, "esi", 32, "int32", ""},       {7, "edi", 32, "int32", ""},
      {8, "eip", 32, "code_ptr", ""},    {9, "eflags", 32, "i386_eflags", ""},
      {10, "cs", 32, "int32", ""},       {15, "gs", 32, "int32", ""},
      {16, "st0", 80, "i387_ext", ""},   {24, "fctrl", 32, "int", "float"},
      {31, "fop", 32, "int", "float"},   {32, "xmm0", 128, "vec128", ""},
      {39, "xmm7", 128, "vec128", ""},   {40, "mxcsr", 32, "i386_mxcsr", "vector"},
      {41, "orig_eax", 32, "int", ""},   {42, "ymm0h", 128, "uint128", ""},
      {49, "ymm7h", 128, "uint128", ""}, {50, "k0", 64, "uint64", ""},
      {58, "zmm0h", 256, "v2ui128", ""}, {65, "zmm7h", 256, "v2ui128", ""},
      {66, "pkru", 32, "uint32", ""},
  };
  const GdbRegisterSet set = make(Isa::kI386, kAvx512Pkru);
  EXPECT_EQ(set.registers().size(), 67U);
  EXPECT_FALSE(set.find("fs_base"));
  EXPECT_FALSE(set.find("xmm8"));
  expect_registers(set, rows);
}

TEST(GdbRegisterSet, HasTheBlockSizesOfGdbserver) {
  EXPECT_EQ(make(Isa::kAmd64, kAvx512).block_bytes(), 2416U);
  EXPECT_EQ(make(Isa::kAmd64, kAvx512Pkru).block_bytes(), 2420U);
  EXPECT_EQ(make(Isa::kI386, kAvx512).block_bytes(), 760U);
  EXPECT_EQ(make(Isa::kAmd64, kAvx).block_bytes(), 816U);
  EXPECT_EQ(make(Isa::kAmd64, kSseOnly).block_bytes(), 560U);
  EXPECT_EQ((GdbRegisterSet{Isa::kAmd64, XsaveLayout{}}.block_bytes()), 560U);
}

TEST(GdbRegisterSet, MpxShiftsWhatFollows) {
  const GdbRegisterSet amd64 = make(Isa::kAmd64, kEverything);
  EXPECT_EQ(amd64.find("bnd0raw"), 76U);
  EXPECT_EQ(amd64.find("bndstatus"), 81U);
  EXPECT_EQ(amd64.find("xmm16"), 82U);
  EXPECT_EQ(amd64.find("pkru"), 154U);
  EXPECT_EQ(make(Isa::kI386, kEverything).find("pkru"), 72U);
  EXPECT_FALSE(make(Isa::kAmd64, kAvx512).find("bnd0raw"));
}

TEST(GdbRegisterSet, HasNoRegistersTheCpuLacks) {
  EXPECT_FALSE(make(Isa::kAmd64, kAvx).find("k0"));
  EXPECT_FALSE(make(Isa::kAmd64, kSseOnly).find("ymm0h"));
  EXPECT_FALSE(make(Isa::kAmd64, kAvx512).find("pkru"));
  EXPECT_FALSE(make(Isa::kAmd64, kAvx512).find("eax"));
}

TEST(GdbRegisterSet, BeginsWithWhatGdbAssumes) {
  for (const std::uint64_t xcr0 : {kSseOnly, kAvx, kEverything}) {
    EXPECT_EQ(make(Isa::kAmd64, xcr0).assumed_block_bytes(), 560U);
    EXPECT_EQ(make(Isa::kI386, xcr0).assumed_block_bytes(), 312U);
  }
  EXPECT_EQ(make(Isa::kAmd64, kAvx).assumed_xml().find("<feature"), std::string::npos);
}

TEST(GdbRegisterSet, LeavesNoHolesInTheBlock) {
  for (const Isa isa : {Isa::kAmd64, Isa::kI386}) {
    const GdbRegisterSet set = make(isa, kEverything);
    std::size_t offset = 0;
    for (const GdbRegister& r : set.registers()) {
      EXPECT_EQ(r.offset, offset) << r.name;
      offset += r.bits / 8;
    }
    EXPECT_EQ(set.block_bytes(), offset);
  }
}

TEST(GdbRegisterSet, ExpeditesFrameStackAndPc) {
  const GdbRegisterSet amd64 = make(Isa::kAmd64, kAvx);
  EXPECT_EQ((std::vector<std::size_t>{amd64.expedited().begin(), amd64.expedited().end()}),
            (std::vector<std::size_t>{6, 7, 16}));
  EXPECT_EQ(amd64.pc_number(), 16U);
  const GdbRegisterSet i386 = make(Isa::kI386, kAvx);
  EXPECT_EQ((std::vector<std::size_t>{i386.expedited().begin(), i386.expedited().end()}),
            (std::vector<std::size_t>{5, 4, 8}));
  EXPECT_EQ(i386.pc_number(), 8U);
}

class TargetXml : public ::testing::TestWithParam<std::pair<Isa, std::uint64_t>> {
 protected:
  TargetXml() : set_{make(GetParam().first, GetParam().second)} {
    parsed_ = document_.load_string(set_.target_xml().c_str());
  }

  GdbRegisterSet set_;
  pugi::xml_document document_;
  pugi::xml_parse_result parsed_;
};

TEST_P(TargetXml, IsWellFormedAndNamesTheArchitecture) {
  ASSERT_TRUE(parsed_) << parsed_.description();
  const pugi::xml_node target = document_.child("target");
  EXPECT_STREQ(target.child_value("architecture"),
               set_.isa() == Isa::kAmd64 ? "i386:x86-64" : "i386");
  EXPECT_STREQ(target.child_value("osabi"), "GNU/Linux");
}

TEST_P(TargetXml, ListsTheRegistersInOrder) {
  std::size_t number = 0;
  std::set<std::string> seen;
  for (const pugi::xml_node feature : document_.child("target").children("feature")) {
    const std::string name = feature.attribute("name").value();
    EXPECT_TRUE(seen.insert(name).second) << name << " twice";
    for (const pugi::xml_node reg : feature.children("reg")) {
      ASSERT_LT(number, set_.registers().size());
      const GdbRegister& r = set_.registers()[number];
      EXPECT_EQ(reg.attribute("name").value(), r.name);
      EXPECT_EQ(reg.attribute("bitsize").as_uint(), r.bits);
      EXPECT_EQ(reg.attribute("type").value(), r.type);
      EXPECT_EQ(reg.attribute("group").value(), r.group);
      EXPECT_EQ(reg.attribute("regnum").as_uint(), number);
      EXPECT_EQ(name, r.feature);
      ++number;
    }
  }
  EXPECT_EQ(number, set_.registers().size());
}

TEST_P(TargetXml, DeclaresEveryTypeInTheFeatureThatUsesIt) {
  const std::set<std::string> predefined{"int",         "int8",     "int16",     "int32",
                                         "int64",       "uint32",   "uint64",    "uint128",
                                         "data_ptr",    "code_ptr", "ieee_half", "ieee_single",
                                         "ieee_double", "bfloat16", "i387_ext"};
  for (const pugi::xml_node feature : document_.child("target").children("feature")) {
    std::set<std::string> known = predefined;
    for (const pugi::xml_node node : feature.children()) {
      const std::string kind = node.name();
      if (kind == "flags" || kind == "struct" || kind == "union") {
        for (const pugi::xml_node field : node.children("field")) {
          const std::string type = field.attribute("type").value();
          EXPECT_TRUE(type == "bool" || known.contains(type)) << type;
        }
      } else {
        const std::string type = node.attribute("type").value();
        EXPECT_TRUE(known.contains(type)) << type;
      }
      if (kind != "reg") known.insert(node.attribute("id").value());
    }
  }
}

TEST_P(TargetXml, VectorsFillTheirUnion) {
  const std::map<std::string, unsigned> bits{
      {"bfloat16", 16}, {"ieee_half", 16}, {"ieee_single", 32}, {"ieee_double", 64}, {"int8", 8},
      {"int16", 16},    {"int32", 32},     {"int64", 64},       {"uint128", 128}};
  unsigned vectors = 0;
  for (const pugi::xml_node feature : document_.child("target").children("feature")) {
    for (const pugi::xml_node v : feature.children("vector")) {
      const unsigned total = bits.at(v.attribute("type").value()) * v.attribute("count").as_uint();
      EXPECT_EQ(total, std::string{v.attribute("id").value()} == "v2ui128" ? 256U : 128U);
      ++vectors;
    }
  }
  EXPECT_GE(vectors, 8U);
}

TEST_P(TargetXml, DescribesTheFlags) {
  const pugi::xml_node target = document_.child("target");
  const auto flags = [&](const char* id) {
    std::map<unsigned, std::string> names;
    const pugi::xpath_node_set fields =
        target.select_nodes((std::string{"feature/flags[@id='"} + id + "']/field").c_str());
    for (const pugi::xpath_node& f : fields) {
      EXPECT_STREQ(f.node().attribute("start").value(), f.node().attribute("end").value());
      names[f.node().attribute("start").as_uint()] = f.node().attribute("name").value();
    }
    return names;
  };
  EXPECT_EQ(flags("i386_eflags"), (std::map<unsigned, std::string>{{0, "CF"},
                                                                   {1, ""},
                                                                   {2, "PF"},
                                                                   {4, "AF"},
                                                                   {6, "ZF"},
                                                                   {7, "SF"},
                                                                   {8, "TF"},
                                                                   {9, "IF"},
                                                                   {10, "DF"},
                                                                   {11, "OF"},
                                                                   {14, "NT"},
                                                                   {16, "RF"},
                                                                   {17, "VM"},
                                                                   {18, "AC"},
                                                                   {19, "VIF"},
                                                                   {20, "VIP"},
                                                                   {21, "ID"}}));
  EXPECT_EQ(flags("i386_mxcsr"), (std::map<unsigned, std::string>{{0, "IE"},
                                                                  {1, "DE"},
                                                                  {2, "ZE"},
                                                                  {3, "OE"},
                                                                  {4, "UE"},
                                                                  {5, "PE"},
                                                                  {6, "DAZ"},
                                                                  {7, "IM"},
                                                                  {8, "DM"},
                                                                  {9, "ZM"},
                                                                  {10, "OM"},
                                                                  {11, "UM"},
                                                                  {12, "PM"},
                                                                  {15, "FZ"}}));
}

INSTANTIATE_TEST_SUITE_P(
    Cpus, TargetXml,
    ::testing::Values(std::pair{Isa::kAmd64, kSseOnly}, std::pair{Isa::kAmd64, kAvx},
                      std::pair{Isa::kAmd64, kAvx512}, std::pair{Isa::kAmd64, kEverything},
                      std::pair{Isa::kI386, kSseOnly}, std::pair{Isa::kI386, kEverything}));

}  // namespace
}  // namespace backtrail::arch::x86
