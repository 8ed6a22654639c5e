// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/block_digest.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;

TEST(BlockDigests, TellWhatLiesInABlock) {
  // 1000: jz; syscall; jz; jz; call 1017
  FlatCode code{0x1000_ta,
                {0x74, 0x00, 0x0f, 0x05, 0x74, 0x00, 0x74, 0x00, 0xe8, 0x0a, 0x00, 0x00, 0x00}};
  InsnCache insns{code};
  BlockDigests digests{insns};
  const BlockDigest* digest = digests.find(0x1000_ta, 0x1008_ta);
  ASSERT_NE(digest, nullptr);
  EXPECT_EQ(digest->exit, BlockExit::kDirectCall);
  EXPECT_EQ(digest->target, 0x1017_ta);
  EXPECT_EQ(digest->behind(), 0x100d_ta);
  EXPECT_EQ(digest->not_taken, 2U);
  const auto resumptions = digests.resumptions(*digest);
  ASSERT_EQ(resumptions.size(), 1U);
  EXPECT_EQ(resumptions[0].not_taken, 1U);
  EXPECT_EQ(resumptions[0].at, 0x1004_ta);
}

TEST(BlockDigests, AreMadeOnce) {
  FlatCode code{0x1000_ta, {0x90, 0xff, 0xe0}};
  InsnCache insns{code};
  BlockDigests digests{insns};
  (void)digests.find(0x1000_ta, 0x1001_ta);
  insns.invalidate_all();  // Does not notify the digests.
  const int reads = code.reads();
  EXPECT_NE(digests.find(0x1000_ta, 0x1001_ta), nullptr);
  EXPECT_EQ(code.reads(), reads);
  digests.refresh();
  EXPECT_EQ(digests.size(), 0U);
  EXPECT_NE(digests.find(0x1000_ta, 0x1001_ta), nullptr);
  EXPECT_GT(code.reads(), reads);
}

TEST(BlockDigests, AreNotMadeOfCodeThatCannotBeFollowed) {
  FlatCode code{0x1000_ta, {0x90, 0xeb, 0x00, 0x90, 0x90}};
  InsnCache insns{code};
  BlockDigests digests{insns};
  EXPECT_EQ(digests.find(0x1000_ta, 0x1003_ta), nullptr);         // After a jump.
  EXPECT_EQ(digests.find(0x1003_ta, 0x1005_ta), nullptr);         // Unreadable.
  EXPECT_EQ(digests.find(0x1001_ta, 0x1000_ta), nullptr);         // Backwards.
  EXPECT_EQ(digests.find(0x1000_ta, 0x1'0000'1001_ta), nullptr);  // Far away.
  EXPECT_EQ(digests.size(), 0U);
}

TEST(BlockDigests, AreFoundAmongMany) {
  std::vector<std::uint8_t> jumps;
  constexpr std::uint64_t kJumps = 3000;
  for (std::uint64_t i = 0; i < kJumps; ++i) jumps.insert(jumps.end(), {0x0f, 0x05, 0xff, 0xe0});
  FlatCode code{0x1000_ta, std::move(jumps)};
  InsnCache insns{code};
  for (const unsigned bits : {9U, 20U}) {
    BlockDigests digests{insns, bits};
    for (std::uint64_t round = 0; round < 2; ++round) {
      for (std::uint64_t i = 0; i < kJumps; ++i) {
        const TraceeAddr begin = 0x1000_ta + 4 * i;
        const BlockDigest* digest = digests.find(begin, begin + 2);
        ASSERT_NE(digest, nullptr);
        ASSERT_EQ(digest->begin, begin);
        ASSERT_EQ(digest->span, 2U);
        ASSERT_EQ(digests.resumptions(*digest).front().at, begin + 2);
      }
    }
    if (bits == 20) {
      EXPECT_EQ(digests.size(), kJumps);
    } else {
      EXPECT_LE(digests.size(), 256U);
    }
  }
}

}  // namespace
}  // namespace backtrail::decoder
