// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/block_walker.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;

/// 1000: nop; jz; syscall; int3; mov eax, eax; jmp; nop
class BlockWalker : public testing::Test {
 protected:
  FlatCode code_{0x1000_ta, {0x90, 0x74, 0x00, 0x0f, 0x05, 0xcc, 0x89, 0xc0, 0xeb, 0x00, 0x90}};
  InsnCache insns_{code_};
};

TEST_F(BlockWalker, WalksOverEverythingThatMayFallThrough) {
  std::vector<std::uint64_t> visited;
  const Walk walk =
      walk_block(insns_, 0x1000_ta, 0x1008_ta,
                 [&](TraceeAddr pc, const arch::InsnFacts&) { visited.push_back(pc.value()); });
  EXPECT_TRUE(walk.reached());
  EXPECT_EQ(walk.at, 0x1008_ta);
  EXPECT_EQ(walk.last, 0x1006_ta);
  EXPECT_EQ(walk.instructions, 5U);
  EXPECT_EQ(visited, (std::vector<std::uint64_t>{0x1000, 0x1001, 0x1003, 0x1005, 0x1006}));
}

TEST_F(BlockWalker, IsThereAtOnceWhenBeginIsTheEnd) {
  const Walk walk = walk_block(insns_, 0x1008_ta, 0x1008_ta);
  EXPECT_TRUE(walk.reached());
  EXPECT_EQ(walk.instructions, 0U);
  // Holds without any code, too.
  EXPECT_TRUE(walk_block(insns_, 0x9000_ta, 0x9000_ta).reached());
}

TEST_F(BlockWalker, DoesNotPassABranchThatIsAlwaysTaken) {
  const Walk walk = walk_block(insns_, 0x1000_ta, 0x100a_ta);
  EXPECT_EQ(walk.end, WalkEnd::kDiverged);
  EXPECT_EQ(walk.at, 0x1008_ta);
  for (const std::vector<std::uint8_t>& bytes : std::vector<std::vector<std::uint8_t>>{
           {0xe8, 0, 0, 0, 0}, {0xff, 0xd0}, {0xff, 0xe0}, {0xc3}, {0xe9, 0, 0, 0, 0}}) {
    FlatCode branch{0x1000_ta, bytes};
    InsnCache insns{branch};
    EXPECT_EQ(walk_block(insns, 0x1000_ta, 0x1000_ta + bytes.size()).end, WalkEnd::kDiverged);
  }
}

TEST_F(BlockWalker, DoesNotEndInsideAnInstruction) {
  EXPECT_EQ(walk_block(insns_, 0x1000_ta, 0x1002_ta).end, WalkEnd::kDiverged);
  EXPECT_EQ(walk_block(insns_, 0x1000_ta, 0x1007_ta).end, WalkEnd::kDiverged);
}

TEST_F(BlockWalker, DoesNotWalkBackwards) {
  EXPECT_EQ(walk_block(insns_, 0x1003_ta, 0x1001_ta).end, WalkEnd::kDiverged);
}

TEST_F(BlockWalker, SaysWhereCodeEnds) {
  const Walk walk = walk_block(insns_, 0x100a_ta, 0x1020_ta);
  EXPECT_EQ(walk.end, WalkEnd::kUndecodable);
  EXPECT_EQ(walk.at, 0x100b_ta);
  EXPECT_EQ(walk.last, 0x100a_ta);
}

TEST(BlockWalkerBound, IsABlocksLength) {
  FlatCode code{0x1000_ta, std::vector<std::uint8_t>(2 * kMaxBlockBytes, 0x90)};
  InsnCache insns{code};
  EXPECT_EQ(walk_block(insns, 0x1000_ta, 0x1000_ta + kMaxBlockBytes + 1).instructions, 0U);
  EXPECT_EQ(code.reads(), 0);
  EXPECT_EQ(walk_block(insns, 0xffff'ffff'ffff'fff0_ta, 0x10_ta).end, WalkEnd::kDiverged);
}

TEST(BlockWalkerBound, MayBeReached) {
  // Long instructions make the test fast: 14 prefixes and a nop.
  std::vector<std::uint8_t> bytes;
  while (bytes.size() + 15 <= kMaxBlockBytes) {
    bytes.insert(bytes.end(), 14, 0x66);
    bytes.push_back(0x90);
  }
  const TraceeAddr end = 0x1000_ta + bytes.size();
  FlatCode code{0x1000_ta, std::move(bytes)};
  InsnCache insns{code};
  EXPECT_TRUE(walk_block(insns, 0x1000_ta, end).reached());
}

}  // namespace
}  // namespace backtrail::decoder
