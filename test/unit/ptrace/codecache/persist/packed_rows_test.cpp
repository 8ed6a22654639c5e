// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_rows.hpp"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::PcRow;

constexpr TraceeAddr kHead{0x5555'5555'1234};

void expect_same(const PcRow& expected, const PcRow& got) {
  EXPECT_EQ(expected.offset, got.offset);
  EXPECT_EQ(expected.pc, got.pc);
  EXPECT_EQ(expected.stack_add, got.stack_add);
  EXPECT_EQ(expected.passed, got.passed);
  EXPECT_EQ(expected.flags, got.flags);
}

std::vector<PcRow> random_rows(std::mt19937& random, std::size_t count) {
  const auto upto = [&](unsigned most) { return static_cast<unsigned>(random() % (most + 1)); };
  std::vector<PcRow> rows;
  PcRow row{.pc = kHead};
  for (std::size_t i = 0; i < count; ++i) {
    if (i != 0) row.offset += 1 + upto(upto(4) == 0 ? 2000 : 12);
    row.pc = upto(8) == 0
                 ? kHead + (upto(1) == 0 ? upto(1 << 20) : 0 - std::uint64_t{upto(1 << 20)})
                 : row.pc + upto(15);
    if (upto(9) == 0) row.pc = TraceeAddr{};
    row.stack_add = upto(3) == 0 ? static_cast<std::int32_t>(upto(600)) - 300 : 0;
    row.passed = static_cast<std::uint16_t>(row.passed + upto(1));
    row.flags = static_cast<std::uint8_t>(upto(255));
    rows.push_back(row);
  }
  return rows;
}

TEST(PackedRows, ComeBackAsTheyWere) {
  std::mt19937 random{1};
  std::vector<std::uint8_t> packed;
  for (std::size_t count = 1; count < 60; ++count) {
    const auto rows = random_rows(random, count);
    const std::size_t before = packed.size();
    pack_rows(rows, kHead, packed);
    const auto bytes = std::span{packed}.subspan(before);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t end = i + 1 < count ? rows[i + 1].offset : rows[i].offset + 20;
      for (const std::uint32_t at : {rows[i].offset, end - 1}) {
        const auto row = row_at(bytes, kHead, at);
        ASSERT_TRUE(row);
        expect_same(rows[i], *row);
      }
    }
  }
}

TEST(PackedRows, KeepTheLargestAndTheSmallestValues) {
  const std::vector<PcRow> rows{
      {.offset = 7, .pc = TraceeAddr{~std::uint64_t{0}}, .passed = 0xffff, .flags = 0xff},
      {.offset = std::numeric_limits<std::uint32_t>::max(),
       .pc = TraceeAddr{},
       .stack_add = std::numeric_limits<std::int32_t>::min()}};
  std::vector<std::uint8_t> packed;
  pack_rows(rows, kHead, packed);
  EXPECT_FALSE(row_at(packed, kHead, 6));
  expect_same(rows[0], row_at(packed, kHead, 7).value_or(PcRow{}));
  expect_same(rows[1], row_at(packed, kHead, rows[1].offset).value_or(PcRow{}));
}

TEST(PackedRows, AreAFewBytesEach) {
  std::vector<PcRow> rows;
  PcRow row{.pc = kHead};
  for (int i = 0; i < 100; ++i) {
    rows.push_back(row);
    row.offset += 4;
    row.pc += 4;
  }
  std::vector<std::uint8_t> packed;
  pack_rows(rows, kHead, packed);
  EXPECT_LE(packed.size(), 201U);
}

TEST(PackedRows, DamagedOnesDoNoHarm) {
  std::mt19937 random{2};
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> bytes(random() % 40);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() & 0xffU);
    for (std::uint64_t at = 0; at < 60; at += 7) (void)row_at(bytes, kHead, at);
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
