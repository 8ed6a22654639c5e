// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_history.hpp"

#include <gtest/gtest.h>

#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;

/// 1000: jmp rax; 1002: jz 1000; 1004: nop
class PtHistoryTest : public testing::Test {
 protected:
  void consume(PtHistory& history, const std::vector<Record>& records) { history.consume(records); }
  [[nodiscard]] std::vector<Record> jumps(std::size_t count) const {
    return std::vector<Record>(count, branch(0x1000_ta, 0x1000_ta));
  }
  [[nodiscard]] std::size_t instructions(PtHistory& history, TraceeAddr pc) {
    const auto items = test::decode_ipt(history.read_all(pc), code_);
    EXPECT_EQ(test::executed(items).size(), items.size());
    return items.size();
  }

  FlatCode code_{0x1000_ta, {0xff, 0xe0, 0x74, 0xfc, 0x90, 0x90}};
  InsnCache insns_{code_};
  const Record start_ = gap(GapReason::kStart, {}, 0x1000_ta);
};

TEST_F(PtHistoryTest, IsEmptyBeforeTheFirstRecord) {
  PtHistory history{insns_, 4096};
  EXPECT_TRUE(history.read_all(0x1000_ta).empty());
  consume(history, {});
  EXPECT_FALSE(history.changed());
  EXPECT_EQ(history.size_bytes(), 4096U);
}

TEST_F(PtHistoryTest, KeepsEverythingThatFits) {
  PtHistory history{insns_, 4096};
  consume(history, {start_});
  consume(history, jumps(900));
  EXPECT_EQ(instructions(history, 0x1000_ta), 900U);
  EXPECT_EQ(history.overwritten_bytes(), 0U);
}

TEST_F(PtHistoryTest, DropsTheOldestStretches) {
  for (const std::uint64_t size : {4096U, 16384U, 65536U}) {
    PtHistory history{insns_, size};
    consume(history, {start_});
    consume(history, jumps(100'000));
    const std::size_t bytes = history.read_all(0x1000_ta).size();
    EXPECT_LE(bytes, size);
    EXPECT_GE(bytes, size - size / 8);
    // 3 bytes for each jump, and occasional PSBs.
    EXPECT_GE(instructions(history, 0x1000_ta), size * 3 / 4 / 3);
    EXPECT_GT(history.overwritten_bytes(), 300'000 - size);
  }
}

TEST_F(PtHistoryTest, AnUnlimitedSizeTakesMemoryOnlyAsItFills) {
  PtHistory history{insns_, 0xffff'ffff};
  consume(history, {start_});
  consume(history, jumps(100'000));
  EXPECT_EQ(instructions(history, 0x1000_ta), 100'000U);
  EXPECT_EQ(history.overwritten_bytes(), 0U);
}

TEST_F(PtHistoryTest, KeepsTheNewestStretchWhateverTheSize) {
  for (const std::uint64_t size : {0U, 1U, 24U}) {
    PtHistory history{insns_, size};
    consume(history, {start_});
    consume(history, jumps(1000));
    EXPECT_LE(history.read_all(0x1000_ta).size(), 512U);
    consume(history, {branch(0x1000_ta, 0x1004_ta)});
    EXPECT_GE(instructions(history, 0x1005_ta), 2U);
  }
}

TEST_F(PtHistoryTest, KnowsWhetherThereIsSomethingNew) {
  PtHistory history{insns_, 4096};
  consume(history, {start_});
  EXPECT_TRUE(history.changed());
  EXPECT_TRUE(history.changed(0x1000_ta));
  (void)history.read_all(0x1000_ta);
  EXPECT_FALSE(history.changed());
  EXPECT_FALSE(history.changed(0x1000_ta));
  EXPECT_TRUE(history.changed(0x1002_ta));
  consume(history, jumps(1));
  EXPECT_TRUE(history.changed());
  EXPECT_TRUE(history.changed(0x1000_ta));
}

TEST_F(PtHistoryTest, ReadingLeavesNoMark) {
  PtHistory read{insns_, 4096};
  PtHistory unread{insns_, 4096};
  consume(read, {start_});
  consume(unread, {start_});
  for (int i = 0; i < 20; ++i) {
    const std::vector<Record> some{branch(0x1000_ta, 0x1002_ta), branch(0x1002_ta, 0x1000_ta)};
    consume(read, some);
    consume(unread, some);
    (void)read.read_all(0x1000_ta);
  }
  EXPECT_EQ(read.read_all(0x1000_ta), unread.read_all(0x1000_ta));
}

TEST_F(PtHistoryTest, AnExecForgetsWhatWasBefore) {
  PtHistory history{insns_, 4096};
  consume(history, {start_});
  consume(history, jumps(1000));
  consume(history, {branch(0x1000_ta, 0x1000_ta), gap(GapReason::kExec, 0x1000_ta, 0x1004_ta)});
  EXPECT_EQ(instructions(history, 0x1006_ta), 2U);
}

}  // namespace
}  // namespace backtrail::decoder
