// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/bts_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kRecordBytes = sizeof(Record);

/// Code from 0x1000 to 0x103f: nops of two bytes each; unreadable after that.
class BtsHistoryTest : public testing::Test {
 protected:
  static std::vector<std::uint8_t> nops() {
    std::vector<std::uint8_t> bytes;
    for (int i = 0; i < 32; ++i) bytes.insert(bytes.end(), {0x66, 0x90});
    return bytes;
  }
  void consume(const std::vector<Record>& records) { history_.consume(records); }
  void start(TraceeAddr at) { consume({gap(GapReason::kStart, {}, at)}); }
  std::vector<Block> delta(TraceeAddr pc) {
    auto blocks = history_.read_delta(pc);
    EXPECT_TRUE(blocks.has_value());
    return blocks.value_or(std::vector<Block>{});
  }
  bool overflow(TraceeAddr pc) {
    const auto blocks = history_.read_delta(pc);
    return !blocks && blocks.error().is(TraceErrc::kOverflow);
  }

  FlatCode code_{0x1000_ta, nops()};
  InsnCache insns_{code_};
  BtsHistory history_{insns_, 64 * kRecordBytes};
};

TEST_F(BtsHistoryTest, IsEmptyBeforeTheFirstRecord) {
  EXPECT_THAT(history_.read_all(0x1000_ta), IsEmpty());
  EXPECT_THAT(history_.read_new(0x1000_ta), IsEmpty());
  EXPECT_THAT(delta(0x1000_ta), IsEmpty());
}

TEST_F(BtsHistoryTest, ListsBlocksNewestFirstEndingAtThePc) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta), branch(0x1010_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1024_ta),
              ElementsAre(Block{0x1020_ta, 0x1024_ta}, Block{0x1010_ta, 0x1010_ta},
                          Block{0x1000_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, TheBlockOfAPcThatWasJumpedToIsThatInstruction) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta)});
  EXPECT_THAT(history_.read_all(0x1010_ta),
              ElementsAre(Block{0x1010_ta, 0x1010_ta}, Block{0x1000_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, LeavesOutTheOldestBlockWhenItsBeginIsLost) {
  BtsHistory two{insns_, 2 * kRecordBytes + 5};
  two.consume(std::vector{gap(GapReason::kStart, {}, 0x1000_ta), branch(0x1000_ta, 0x1010_ta),
                          branch(0x1012_ta, 0x1020_ta)});
  EXPECT_EQ(two.overwritten(), 1U);
  EXPECT_THAT(two.read_all(0x1022_ta),
              ElementsAre(Block{0x1020_ta, 0x1022_ta}, Block{0x1010_ta, 0x1012_ta}));
  EXPECT_EQ(two.size_bytes(), 2 * kRecordBytes + 5);
}

TEST_F(BtsHistoryTest, BranchesNeedNoCode) {
  start(0x5000_ta);
  consume({branch(0x5008_ta, 0x6000_ta), branch(0x6008_ta, 0x1000_ta)});
  EXPECT_THAT(history_.read_all(0x1002_ta),
              ElementsAre(Block{0x1000_ta, 0x1002_ta}, Block{0x6000_ta, 0x6008_ta},
                          Block{0x5000_ta, 0x5008_ta}));
}

TEST_F(BtsHistoryTest, ASignalEndsABlockBeforeItsInstruction) {
  start(0x1000_ta);
  consume({async_transfer(0x1006_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1020_ta),
              ElementsAre(Block{0x1020_ta, 0x1020_ta}, Block{0x1000_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, ASignalBeforeABlocksFirstInstructionLeavesNoBlock) {
  start(0x1000_ta);
  consume({branch(0x1002_ta, 0x1010_ta), async_transfer(0x1010_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1020_ta),
              ElementsAre(Block{0x1020_ta, 0x1020_ta}, Block{0x1000_ta, 0x1002_ta}));
}

TEST_F(BtsHistoryTest, ASignalInCodeThatCannotBeFollowedIsAGap) {
  start(0x103c_ta);
  consume({async_transfer(0x1044_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1020_ta),
              ElementsAre(Block{0x1020_ta, 0x1020_ta}, kGapBlock, Block{0x103c_ta, 0x103e_ta}));
  consume({async_transfer(0x1021_ta, 0x1000_ta)});  // The middle of an instruction.
  EXPECT_THAT(history_.read_all(0x1000_ta),
              ElementsAre(Block{0x1000_ta, 0x1000_ta}, kGapBlock, Block{0x103c_ta, 0x103e_ta}));
}

TEST_F(BtsHistoryTest, AGapIsABlockOfZeros) {
  start(0x1000_ta);
  consume({gap(GapReason::kPcChanged, 0x1004_ta, 0x1010_ta), branch(0x1012_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1020_ta),
              ElementsAre(Block{0x1020_ta, 0x1020_ta}, Block{0x1010_ta, 0x1012_ta}, kGapBlock,
                          Block{0x1000_ta, 0x1002_ta}));
}

TEST_F(BtsHistoryTest, AGapOfUnknownOriginEndsNoBlock) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1030_ta), gap(GapReason::kOverflow, {}, 0x1010_ta, 9)});
  EXPECT_THAT(history_.read_all(0x1010_ta),
              ElementsAre(Block{0x1010_ta, 0x1010_ta}, kGapBlock, Block{0x1000_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, GapsInARowAreOne) {
  start(0x1000_ta);
  consume({branch(0x1000_ta, 0x1030_ta), gap(GapReason::kOverflow, {}, 0x1010_ta),
           gap(GapReason::kNotRecorded, {}, 0x1020_ta),
           gap(GapReason::kNotRecorded, 0x1020_ta, 0x1030_ta)});
  EXPECT_THAT(history_.read_all(0x1030_ta),
              ElementsAre(Block{0x1030_ta, 0x1030_ta}, kGapBlock, Block{0x1000_ta, 0x1000_ta}));
}

TEST_F(BtsHistoryTest, AGapAtTheOldestEndIsNotShown) {
  start(0x1000_ta);
  consume({gap(GapReason::kNotRecorded, 0x1000_ta, 0x1010_ta)});
  EXPECT_THAT(history_.read_all(0x1012_ta), ElementsAre(Block{0x1010_ta, 0x1012_ta}));
  BtsHistory two{insns_, 2 * kRecordBytes};
  two.consume(std::vector{gap(GapReason::kStart, {}, 0x1000_ta),
                          gap(GapReason::kOverflow, {}, 0x1010_ta), branch(0x1012_ta, 0x1020_ta)});
  EXPECT_THAT(two.read_all(0x1020_ta),
              ElementsAre(Block{0x1020_ta, 0x1020_ta}, Block{0x1010_ta, 0x1012_ta}));
}

TEST_F(BtsHistoryTest, APcThatTheTraceDoesNotLeadToStandsAlone) {
  start(0x1000_ta);
  consume({branch(0x1002_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1010_ta),
              ElementsAre(Block{0x1010_ta, 0x1010_ta}, kGapBlock, Block{0x1000_ta, 0x1002_ta}));
}

TEST_F(BtsHistoryTest, NewIsEmptyUntilSomethingHappens) {
  start(0x1000_ta);
  EXPECT_THAT(history_.read_new(0x1000_ta), ElementsAre(Block{0x1000_ta, 0x1000_ta}));
  EXPECT_THAT(history_.read_new(0x1000_ta), IsEmpty());
  EXPECT_THAT(history_.read_new(0x1002_ta), ElementsAre(Block{0x1000_ta, 0x1002_ta}));
  EXPECT_THAT(history_.read_new(0x1002_ta), IsEmpty());
  consume({branch(0x1004_ta, 0x1002_ta)});
  EXPECT_THAT(history_.read_new(0x1002_ta),
              ElementsAre(Block{0x1002_ta, 0x1002_ta}, Block{0x1000_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, TheFirstDeltaBeginsWhereRecordingBegan) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta), branch(0x1012_ta, 0x1020_ta)});
  EXPECT_THAT(delta(0x1022_ta), ElementsAre(Block{0x1020_ta, 0x1022_ta},
                                            Block{0x1010_ta, 0x1012_ta}, Block{0_ta, 0x1004_ta}));
}

TEST_F(BtsHistoryTest, AReaderWhoKnowsOfALaterStartGetsNoDelta) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta)});
  history_.note_earlier_start();
  EXPECT_TRUE(overflow(0x1012_ta));
  EXPECT_THAT(history_.read_new(0x1012_ta),
              ElementsAre(Block{0x1010_ta, 0x1012_ta}, Block{0x1000_ta, 0x1004_ta}));
  EXPECT_THAT(delta(0x1014_ta), ElementsAre(Block{0_ta, 0x1014_ta}));
}

TEST_F(BtsHistoryTest, ADeltaTellsOnlyWhatIsNewSinceAReadOfAnyKind) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta)});
  (void)history_.read_all(0x1012_ta);
  EXPECT_THAT(delta(0x1012_ta), IsEmpty());
  EXPECT_THAT(delta(0x1014_ta), ElementsAre(Block{0_ta, 0x1014_ta}));
  consume({branch(0x1016_ta, 0x1020_ta)});
  EXPECT_THAT(delta(0x1022_ta), ElementsAre(Block{0x1020_ta, 0x1022_ta}, Block{0_ta, 0x1016_ta}));
  consume({branch(0x1022_ta, 0x1000_ta)});
  (void)history_.read_new(0x1002_ta);
  EXPECT_THAT(delta(0x1002_ta), IsEmpty());
}

TEST_F(BtsHistoryTest, ADeltaMayEndWithASignal) {
  start(0x1000_ta);
  (void)history_.read_all(0x1002_ta);
  consume({async_transfer(0x1006_ta, 0x1020_ta)});
  EXPECT_THAT(delta(0x1020_ta), ElementsAre(Block{0x1020_ta, 0x1020_ta}, Block{0_ta, 0x1004_ta}));
  consume({async_transfer(0x1020_ta, 0x1030_ta)});
  EXPECT_TRUE(overflow(0x1030_ta)) << "gdb would take 0x1020 as executed";
}

TEST_F(BtsHistoryTest, AFailedDeltaIsNoRead) {
  start(0x1000_ta);
  (void)history_.read_all(0x1000_ta);
  consume({gap(GapReason::kPcChanged, 0x1000_ta, 0x1010_ta)});
  EXPECT_TRUE(overflow(0x1010_ta));
  EXPECT_TRUE(overflow(0x1010_ta));
  EXPECT_THAT(history_.read_new(0x1010_ta), ElementsAre(Block{0x1010_ta, 0x1010_ta}));
  EXPECT_THAT(delta(0x1010_ta), IsEmpty());
}

TEST_F(BtsHistoryTest, ADeltaThatLostRecordsIsAnError) {
  BtsHistory two{insns_, 2 * kRecordBytes};
  two.consume(std::vector{gap(GapReason::kStart, {}, 0x1000_ta), branch(0x1000_ta, 0x1010_ta)});
  (void)two.read_all(0x1010_ta);
  two.consume(std::vector{branch(0x1010_ta, 0x1020_ta), branch(0x1020_ta, 0x1030_ta)});
  const auto whole = two.read_delta(0x1030_ta);
  ASSERT_TRUE(whole.has_value());
  EXPECT_THAT(*whole, ElementsAre(Block{0x1030_ta, 0x1030_ta}, Block{0x1020_ta, 0x1020_ta},
                                  Block{0_ta, 0x1010_ta}));
  two.consume(std::vector{branch(0x1030_ta, 0x1000_ta), branch(0x1000_ta, 0x1010_ta),
                          branch(0x1010_ta, 0x1020_ta)});
  EXPECT_FALSE(two.read_delta(0x1020_ta).has_value());
}

TEST_F(BtsHistoryTest, ADeltaWhoseStartWasOverwrittenIsAnError) {
  BtsHistory two{insns_, 2 * kRecordBytes};
  two.consume(std::vector{gap(GapReason::kStart, {}, 0x1000_ta), branch(0x1000_ta, 0x1010_ta),
                          branch(0x1010_ta, 0x1020_ta)});
  EXPECT_FALSE(two.read_delta(0x1020_ta).has_value());
}

TEST_F(BtsHistoryTest, ADeltaThatDoesNotConnectIsAnError) {
  start(0x1000_ta);
  (void)history_.read_all(0x1008_ta);
  EXPECT_TRUE(overflow(0x1004_ta)) << "the pc went back without a branch";
  EXPECT_TRUE(overflow(0x2000_ta)) << "the pc is somewhere else";
  consume({branch(0x1004_ta, 0x1010_ta)});
  EXPECT_TRUE(overflow(0x1010_ta)) << "a branch that lies before the last read's pc";
  EXPECT_THAT(history_.read_new(0x1010_ta),
              ElementsAre(Block{0x1010_ta, 0x1010_ta}, Block{0x1000_ta, 0x1004_ta}));
  consume({branch(0x1010_ta, 0x1020_ta)});
  EXPECT_TRUE(overflow(0x1000_ta)) << "the newest record does not lead to the pc";
}

TEST_F(BtsHistoryTest, AnExecForgetsWhatWasBefore) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta)});
  (void)history_.read_all(0x1010_ta);
  consume({branch(0x1012_ta, 0x1020_ta), gap(GapReason::kExec, 0x1020_ta, 0x1008_ta),
           branch(0x100a_ta, 0x1010_ta)});
  EXPECT_TRUE(overflow(0x1010_ta));
  EXPECT_THAT(history_.read_new(0x1010_ta),
              ElementsAre(Block{0x1010_ta, 0x1010_ta}, Block{0x1008_ta, 0x100a_ta}));
  EXPECT_EQ(history_.overwritten(), 0U);
}

TEST_F(BtsHistoryTest, CanBeCleared) {
  start(0x1000_ta);
  consume({branch(0x1004_ta, 0x1010_ta)});
  (void)history_.read_all(0x1010_ta);
  history_.clear();
  EXPECT_EQ(history_.records().size(), 0U);
  EXPECT_TRUE(overflow(0x1010_ta));
  EXPECT_THAT(history_.read_all(0x1010_ta), IsEmpty());
  consume({branch(0x1012_ta, 0x1020_ta)});
  EXPECT_THAT(history_.read_all(0x1020_ta), ElementsAre(Block{0x1020_ta, 0x1020_ta}));
}

TEST_F(BtsHistoryTest, AnUnlimitedSizeTakesMemoryOnlyAsItFills) {
  BtsHistory unlimited{insns_, 0xffff'ffff};
  unlimited.consume(std::vector{gap(GapReason::kStart, {}, 0x1000_ta)});
  const std::vector<Record> loop(1000, branch(0x1002_ta, 0x1000_ta));
  for (int i = 0; i < 20; ++i) unlimited.consume(loop);
  EXPECT_EQ(unlimited.read_all(0x1000_ta).size(), 20'001U);
  EXPECT_EQ(unlimited.overwritten(), 0U);
}

}  // namespace
}  // namespace backtrail::decoder
