// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_pc_map.hpp"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::PcMapEntry;

constexpr TraceeAddr kStart{0x5555'5555'1234};

void expect_same(const PcMapEntry& expected, const PcMapEntry& got) {
  EXPECT_EQ(expected.offset, got.offset);
  EXPECT_EQ(expected.pc, got.pc);
  EXPECT_EQ(expected.stack_add, got.stack_add);
  EXPECT_EQ(expected.passed, got.passed);
  EXPECT_EQ(expected.flags, got.flags);
}

std::vector<PcMapEntry> random_pc_map(std::mt19937& random, std::size_t count) {
  const auto upto = [&](unsigned most) { return static_cast<unsigned>(random() % (most + 1)); };
  std::vector<PcMapEntry> pc_map;
  PcMapEntry map_entry{.pc = kStart};
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) map_entry.offset += 1 + upto(upto(4) == 0 ? 2000 : 12);
    map_entry.pc = upto(8) == 0
                       ? kStart + (upto(1) == 0 ? upto(1 << 20) : 0 - std::uint64_t{upto(1 << 20)})
                       : map_entry.pc + upto(15);
    if (upto(9) == 0) map_entry.pc = TraceeAddr{};
    map_entry.stack_add = upto(3) == 0 ? static_cast<std::int32_t>(upto(600)) - 300 : 0;
    map_entry.passed = static_cast<std::uint16_t>(map_entry.passed + upto(1));
    map_entry.flags = static_cast<std::uint8_t>(upto(255));
    pc_map.push_back(map_entry);
  }
  return pc_map;
}

TEST(PackedPcMap, ComeBackAsTheyWere) {
  std::mt19937 random{1};
  std::vector<std::uint8_t> packed;
  for (std::size_t count = 1; count < 300; count += count < 60 ? 1 : 47) {
    const auto pc_map = random_pc_map(random, count);
    const std::size_t before = packed.size();
    pack_pc_map(pc_map, kStart, packed);
    const auto bytes = std::span{packed}.subspan(before);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t end = i + 1 < count ? pc_map[i + 1].offset : pc_map[i].offset + 20;
      for (const std::uint32_t at : {pc_map[i].offset, end - 1}) {
        const auto map_entry = entry_at(bytes, kStart, at);
        ASSERT_TRUE(map_entry);
        expect_same(pc_map[i], *map_entry);
      }
    }
  }
}

TEST(PackedPcMap, KeepTheLargestAndTheSmallestValues) {
  const std::vector<PcMapEntry> pc_map{
      {.offset = 7, .pc = TraceeAddr{~std::uint64_t{0}}, .passed = 0xffff, .flags = 0xff},
      {.offset = std::numeric_limits<std::uint32_t>::max(),
       .pc = TraceeAddr{},
       .stack_add = std::numeric_limits<std::int32_t>::min()}};
  std::vector<std::uint8_t> packed;
  pack_pc_map(pc_map, kStart, packed);
  EXPECT_FALSE(entry_at(packed, kStart, 6));
  expect_same(pc_map[0], entry_at(packed, kStart, 7).value_or(PcMapEntry{}));
  expect_same(pc_map[1], entry_at(packed, kStart, pc_map[1].offset).value_or(PcMapEntry{}));
}

TEST(PackedPcMap, AreAFewBytesEach) {
  std::vector<PcMapEntry> pc_map;
  PcMapEntry map_entry{.pc = kStart};
  for (int i = 0; i < 100; ++i) {
    pc_map.push_back(map_entry);
    map_entry.offset += 4;
    map_entry.pc += 4;
  }
  std::vector<std::uint8_t> packed;
  pack_pc_map(pc_map, kStart, packed);
  EXPECT_LE(packed.size(), 201U);
}

TEST(PackedPcMap, DamagedOnesDoNoHarm) {
  std::mt19937 random{2};
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> bytes(random() % 40);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & 0xffU);
    for (std::uint64_t at = 0; at < 60; at += 7) (void)entry_at(bytes, kStart, at);
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
