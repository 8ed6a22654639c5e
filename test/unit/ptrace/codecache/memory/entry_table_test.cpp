// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/entry_table.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/translator.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::faster_table_index;
using arch::x86::translate::kMostTableEntries;
using arch::x86::translate::kTableEntries;
using arch::x86::translate::TableIndex;

constexpr TraceeAddr kMiss{0x1000};
constexpr std::size_t kEntryBytes = 8;

class EntryTableTest : public testing::Test {
 protected:
  EntryTableTest() { table_.fill(kMiss); }

  std::vector<std::uint64_t> first_ = std::vector<std::uint64_t>(kTableEntries);
  std::vector<std::uint64_t> more_ = std::vector<std::uint64_t>(kMostTableEntries - kTableEntries);
  std::uint32_t mask_ = 0;
  EntryTable table_{reinterpret_cast<std::uint8_t*>(first_.data()),  // NOLINT
                    reinterpret_cast<std::uint8_t*>(more_.data()),   // NOLINT
                    reinterpret_cast<std::uint8_t*>(&mask_)};        // NOLINT
};

TEST_F(EntryTableTest, BeginsSmall) {
  const std::size_t size = EntryTable::first_size();
  EXPECT_EQ(table_.size(), size);
  EXPECT_EQ(mask_, size - 1);
  EXPECT_EQ(table_[0], kMiss);
  EXPECT_EQ(table_[size - 1], kMiss);
  EXPECT_EQ(table_.index(TraceeAddr{0x7fff'0001'2345}), 0x2345U & (size - 1));
  // Pages that nobody needs are not touched.
  if (size < kTableEntries) {
    EXPECT_EQ(first_[size], 0U);
  }
}

TEST_F(EntryTableTest, GrowsWithinItsFirstPart) {
  if (faster_table_index() != TableIndex::kMasked) {
    GTEST_SKIP() << "this CPU has no PEXT, or a slow one";
  }
  const std::size_t size = 4 * EntryTable::first_size();
  ASSERT_LE(size, kTableEntries);
  std::vector<std::uint64_t> entries(size, kMiss.value());
  entries.back() = 0x7000;
  table_.replace(entries);
  EXPECT_EQ(mask_, size - 1);
  EXPECT_EQ(table_[size - 1], TraceeAddr{0x7000});
  EXPECT_EQ(first_[size - 1], 0x7000U);
  EXPECT_EQ(more_[0], 0U);
}

TEST_F(EntryTableTest, OfMissesGrowsIntoOneOfMisses) {
  if (faster_table_index() != TableIndex::kMasked) {
    GTEST_SKIP() << "this CPU has no PEXT, or a slow one";
  }
  const std::size_t size = 4 * kTableEntries;
  ASSERT_LE(size, kMostTableEntries);
  table_.grow(size, kMiss);
  EXPECT_EQ(table_.size(), size);
  EXPECT_EQ(mask_, size - 1);
  for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(table_[i], kMiss) << i;
}

TEST_F(EntryTableTest, HasMoreEntriesThanPads) {
  EXPECT_EQ(EntryTable::size_for(0), EntryTable::first_size());
  EXPECT_LE(EntryTable::size_for(kTableEntries / 4), kTableEntries);
  if (faster_table_index() != TableIndex::kMasked) {
    EXPECT_EQ(EntryTable::size_for(kMostTableEntries), kTableEntries);
    GTEST_SKIP() << "this CPU has no PEXT, or a slow one";
  }
  for (std::size_t ib_entries = 1; ib_entries < kMostTableEntries / 4; ib_entries *= 3) {
    const std::size_t size = EntryTable::size_for(ib_entries);
    EXPECT_GT(size, 2 * ib_entries);
    EXPECT_EQ(size & (size - 1), 0U);
  }
  EXPECT_EQ(EntryTable::size_for(10 * kMostTableEntries), kMostTableEntries);
}

TEST_F(EntryTableTest, GrowsIntoItsOtherPart) {
  std::vector<std::uint64_t> entries(4 * kTableEntries, kMiss.value());
  entries[5] = 0x5000;
  entries[kTableEntries + 5] = 0x6000;
  entries.back() = 0x7000;
  table_.replace(entries);
  EXPECT_EQ(table_.size(), entries.size());
  EXPECT_EQ(mask_, entries.size() - 1);
  EXPECT_EQ(table_[5], TraceeAddr{0x5000});
  EXPECT_EQ(more_[5], 0x6000U);
  EXPECT_EQ(more_[entries.size() - kTableEntries - 1], 0x7000U);
  EXPECT_EQ(more_[entries.size() - kTableEntries], 0U);
  table_.store(table_.index(TraceeAddr{0x7fff'0001'2345}), TraceeAddr{0x8000});
  EXPECT_EQ(more_[0x2345], 0x8000U);
  table_.fill(kMiss);
  EXPECT_EQ(table_.size(), entries.size());
  EXPECT_EQ(more_[0x2345], kMiss.value());
  EXPECT_EQ(table_[5], kMiss);
  static_assert(sizeof more_[0] == kEntryBytes);
}

}  // namespace
}  // namespace backtrail::tracee::cache
