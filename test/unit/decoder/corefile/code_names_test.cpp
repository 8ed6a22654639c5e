// SPDX-License-Identifier: Apache-2.0
// Tests names of generated code: reading, packing, damage.
#include "decoder/corefile/code_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PerfMap, NamesAreInTheOrderOfTheirAddresses) {
  EXPECT_THAT(parse_perf_map("2000 10 LazyCompile:~f /a b.js:1:2\n0x1000 0x20 g\n"),
              ElementsAre(CodeName{0x1000, 0x20, "g"},
                          CodeName{0x2000, 0x10, "LazyCompile:~f /a b.js:1:2"}));
}

TEST(PerfMap, WhatIsNoNameIsPassedOver) {
  EXPECT_THAT(parse_perf_map(""), IsEmpty());
  EXPECT_THAT(parse_perf_map("\n\n \n1000\n1000 \n1000 10\n1000 10 \nx 10 f\n1000 x f\n1000 0 f\n"
                             "ffffffffffffffff 2 f\n11111111111111111 1 f\n"),
              IsEmpty());
  // The last line is incomplete, which cannot be detected.
  EXPECT_THAT(parse_perf_map("1000 10 f\n2000 10 g"), SizeIs(2));
}

TEST(PerfMap, OfMemoryThatWasUsedAgainTheLastNameCountsAndSaysSo) {
  const std::string before = " (or what was there before)";
  EXPECT_THAT(parse_perf_map("1000 40 a\n1040 40 b\n1080 40 c\n1020 40 new\n"),
              ElementsAre(CodeName{0x1000, 0x20, "a"}, CodeName{0x1020, 0x40, "new" + before},
                          CodeName{0x1080, 0x40, "c"}));
  EXPECT_THAT(parse_perf_map("1000 40 a\n1000 40 a\n"), ElementsAre(CodeName{0x1000, 0x40, "a"}));
  EXPECT_THAT(
      parse_perf_map("1000 10 a\n1020 10 b\n1000 40 large\n1010 1 small\n"),
      ElementsAre(CodeName{0x1000, 0x10, "large" + before}, CodeName{0x1010, 1, "small" + before}));
}

TEST(CodeNames, GiveBackWhatWentIn) {
  std::vector<CodeName> names;
  std::uint64_t at = 0x7f0000000000;
  // More names than fit in a block.
  for (std::size_t i = 0; i < 3000; ++i) {
    names.push_back({at, 0x30, std::string(i % 1000 + 1, 'n')});
    at += 0x40;
  }
  names.push_back({~std::uint64_t{0} - 8, 8, "last"});
  std::vector<std::uint8_t> bytes;
  append_names(names, bytes);
  const BlockScan scan = scan_blocks(bytes);
  EXPECT_EQ(scan.unreadable_bytes, 0U);
  EXPECT_THAT(scan.blocks, IsEmpty());
  EXPECT_GT(scan.names.size(), 1U);
  std::vector<CodeName> back;
  for (const TraceBlock& block : scan.names) ASSERT_TRUE(decode_names(block, back));
  EXPECT_EQ(back, names);
}

TEST(CodeNames, NoneAreNoBlock) {
  std::vector<std::uint8_t> bytes;
  append_names({}, bytes);
  EXPECT_THAT(bytes, IsEmpty());
}

TEST(CodeNames, LongOnesAreCut) {
  std::vector<std::uint8_t> bytes;
  append_names(std::vector<CodeName>{{1, 2, std::string(kMostNameBytes + 1, 'x')}}, bytes);
  std::vector<CodeName> back;
  ASSERT_TRUE(decode_names(scan_blocks(bytes).names.at(0), back));
  EXPECT_THAT(back.at(0).name, SizeIs(kMostNameBytes));
}

TEST(CodeNames, DamageIsToldAndAddsNothing) {
  const auto refused = [](std::vector<std::uint8_t> raw, std::uint32_t version = kNamesVersion) {
    std::vector<std::uint8_t> bytes;
    append_packed({.magic = kNamesMagic, .tid = 0, .records = version, .first = 0}, raw, bytes);
    std::vector<CodeName> names{{1, 2, "there"}};
    return !decode_names(scan_blocks(bytes).names.at(0), names) && names.size() == 1;
  };
  EXPECT_FALSE(refused({1, 16, 16, 1, 'f'}));
  EXPECT_TRUE(refused({1, 16, 16, 1, 'f'}, kNamesVersion + 1));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({200}));
  EXPECT_TRUE(refused({2, 16, 16, 1, 'f'}));
  EXPECT_TRUE(refused({1, 16, 16, 9, 'f'}));
  EXPECT_TRUE(refused({1, 16, 16, 1, 'f', 0}));
  // The second name begins beyond the end of memory.
  EXPECT_TRUE(refused({2, 16, 16, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 1, 0}));
}

}  // namespace
}  // namespace backtrail::decoder
