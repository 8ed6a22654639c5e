// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/superblocks.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "ptrace/codecache/persist/packed_pc_map.hpp"
#include "test/unit/ptrace/codecache/translation/loaded_pieces.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::Branch;
using arch::x86::translate::PcMapEntry;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr TraceeAddr kStart{0x40'1000};

class SuperblocksTest : public testing::Test {
 protected:
  /// A superblock of 32 bytes of code after the last one, made of these ranges.
  std::uint32_t add(const std::vector<Branch>& ranges, std::uint8_t flags = 0) {
    const TraceeAddr start = ranges.front().first;
    const std::array<PcMapEntry, 2> pc_map{PcMapEntry{.pc = start},
                                           PcMapEntry{.offset = 8, .pc = start + 3}};
    const CodeBlock block{
        .start = start, .offset = offset_, .logged = id_, .size = 32, .flags = flags};
    offset_ += 48;
    id_ += 2;
    return blocks_.add(block, pc_map, ranges);
  }

  Superblocks blocks_;
  std::uint32_t offset_ = 0x100;
  std::uint32_t id_ = 5;
};

TEST_F(SuperblocksTest, AreFoundByTheirCode) {
  const auto first = add({{kStart, kStart + 10}});
  const auto second = add({{kStart + 16, kStart + 20}});
  EXPECT_EQ(blocks_.size(), 2U);
  EXPECT_EQ(blocks_.index_at(0xff), std::nullopt);
  EXPECT_EQ(blocks_.index_at(0x100), first);
  EXPECT_EQ(blocks_.index_at(0x11f), first);
  EXPECT_EQ(blocks_.index_at(0x120), std::nullopt);
  EXPECT_EQ(blocks_.index_at(0x130), second);
  EXPECT_EQ(blocks_.at(0x131), &blocks_[second]);
  EXPECT_EQ(blocks_.at(0x150), nullptr);
  EXPECT_FALSE(blocks_.is_loaded(0));
}

TEST_F(SuperblocksTest, AreFoundByTheirId) {
  const auto first = add({{kStart, kStart + 10}});
  const auto second = add({{kStart + 16, kStart + 20}});
  EXPECT_EQ(blocks_.index_of(5), first);
  EXPECT_EQ(blocks_.index_of(6), std::nullopt);
  EXPECT_EQ(blocks_.index_of(7), second);
  EXPECT_EQ(blocks_.index_of(9), std::nullopt);
  EXPECT_EQ(blocks_.with_id(7), &blocks_[second]);
  EXPECT_EQ(blocks_.with_id(4), nullptr);
}

TEST_F(SuperblocksTest, KnowThePcOfEachByte) {
  const CodeBlock block = blocks_[add({{kStart, kStart + 10}})];
  EXPECT_EQ(blocks_.map_entry(block, 0)->pc, kStart);
  EXPECT_EQ(blocks_.map_entry(block, 7)->pc, kStart);
  EXPECT_EQ(blocks_.map_entry(block, 31)->pc, kStart + 3);
}

TEST_F(SuperblocksTest, AreFoundByTheCodeTheyWereMadeOf) {
  const TraceeAddr other = kStart + 10 * kPageBytes;
  const auto across = add({{kStart + kPageBytes - 4, kStart + kPageBytes + 4}, {other, other + 8}});
  const auto second = add({{other + 100, other + 120}});
  EXPECT_THAT(blocks_.made_of(kStart, kStart + kPageBytes - 4), IsEmpty());
  EXPECT_THAT(blocks_.made_of(kStart, kStart + kPageBytes - 3), ElementsAre(across));
  EXPECT_THAT(blocks_.made_of(kStart + kPageBytes, kStart + kPageBytes + 1), ElementsAre(across));
  EXPECT_THAT(blocks_.made_of(other, other + kPageBytes), ElementsAre(across, second));
  EXPECT_THAT(blocks_.made_of(other + 8, other + 100), IsEmpty());
  // More pages than there are with code.
  EXPECT_THAT(blocks_.made_of(other - 1, other + 1000 * kPageBytes), ElementsAre(across, second));
  EXPECT_THAT(blocks_.ranges_of(blocks_[across]),
              ElementsAre(Branch{kStart + kPageBytes - 4, kStart + kPageBytes + 4},
                          Branch{other, other + 8}));
}

TEST_F(SuperblocksTest, DroppedOnesAreNotFoundUnlessTheyAreRetired) {
  const auto dropped = add({{kStart, kStart + 10}});
  const auto unloaded = add({{kStart, kStart + 10}});
  blocks_.set(dropped, CodeBlock::kDropped);
  blocks_.set(unloaded, CodeBlock::kDropped);
  blocks_.set(unloaded, CodeBlock::kUnloaded);
  EXPECT_THAT(blocks_.made_of(kStart, kStart + 1), ElementsAre(unloaded));
  blocks_.reset(unloaded, CodeBlock::kUnloaded);
  EXPECT_THAT(blocks_.made_of(kStart, kStart + 1), IsEmpty());
  EXPECT_EQ(blocks_.size(), 2U);
}

TEST_F(SuperblocksTest, RangesAreForgotten) {
  const auto index = add({{kStart, kStart + 10}});
  blocks_.forget_ranges(index);
  EXPECT_THAT(blocks_.made_of(kStart, kStart + 1), IsEmpty());
  EXPECT_EQ(blocks_.index_at(0x100), index);
}

TEST_F(SuperblocksTest, CountEachByteOfTheProgramOnce) {
  add({{kStart, kStart + 10}});
  add({{kStart + 4, kStart + 14}, {kStart + 100, kStart + 101}});
  EXPECT_EQ(blocks_.source_bytes(), 15U);
}

TEST_F(SuperblocksTest, CountCodeThatIsInNoFile) {
  add({{kStart, kStart + 10}});
  add({{kStart + 16, kStart + 20}}, CodeBlock::kMadeHere);
  EXPECT_EQ(blocks_.made_here(), 1U);
  blocks_.clear();
  EXPECT_EQ(blocks_.made_here(), 0U);
  EXPECT_EQ(blocks_.size(), 0U);
  EXPECT_EQ(blocks_.at(0x100), nullptr);
  EXPECT_THAT(blocks_.made_of(kStart, kStart + 1), IsEmpty());
}

TEST_F(SuperblocksTest, LoadedOnesComeFirst) {
  std::vector<std::uint8_t> pc_map;
  pack_pc_map(std::array{PcMapEntry{.pc = kStart + 64}}, kStart + 64, pc_map);
  const std::array blocks{CodeBlock{.start = kStart + 64,
                                    .offset = 0x40,
                                    .logged = 2,
                                    .row_bytes = static_cast<std::uint32_t>(pc_map.size()),
                                    .size = 16}};
  const std::vector<std::uint8_t> code(0x100);
  blocks_.load(loaded_pieces({.modules = {},
                              .code = {code},
                              .blocks = {blocks},
                              .pc_map = {pc_map},
                              .logged = {},
                              .branches = {},
                              .exits = {},
                              .weights = {},
                              .places = {},
                              .ib_entries = {},
                              .translations = {},
                              .crossing = {},
                              .values = {},
                              .value_offsets = {},
                              .first_values = {},
                              .exit_values = {}},
                             true));
  const auto own = add({{kStart, kStart + 10}});
  EXPECT_TRUE(blocks_.is_loaded(0xff));
  EXPECT_FALSE(blocks_.is_loaded(0x100));
  ASSERT_NE(blocks_.at(0x41), nullptr);
  EXPECT_EQ(blocks_.at(0x41)->start, kStart + 64);
  EXPECT_EQ(blocks_.at(0x50), nullptr);
  EXPECT_EQ(blocks_.index_at(0x41), std::nullopt);
  EXPECT_EQ(blocks_.with_id(2), blocks_.at(0x40));
  EXPECT_EQ(blocks_.index_of(2), std::nullopt);
  EXPECT_EQ(blocks_.map_entry(*blocks_.at(0x41), 1)->pc, kStart + 64);
  EXPECT_EQ(blocks_.at(0x100), &blocks_[own]);
  EXPECT_EQ(blocks_.map_entry(blocks_[own], 9)->pc, kStart + 3);
  EXPECT_EQ(blocks_[own].first_row, pc_map.size());
  blocks_.clear();
  EXPECT_EQ(blocks_.at(0x41), nullptr);
  EXPECT_EQ(blocks_.with_id(2), nullptr);
}

}  // namespace
}  // namespace backtrail::tracee::cache
