// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_encoder.hpp"

#include <gtest/gtest.h>

#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using test::FlatCode;
using test::IptItem;
using Bytes = std::vector<std::uint8_t>;
using Addresses = std::vector<std::uint64_t>;

/// An encoder with a few bytes of code at 0x1000, checked by libipt.
class PtEncoderTest : public testing::Test {
 protected:
  void use(Bytes bytes, arch::Isa isa = arch::Isa::kAmd64) {
    code_ = FlatCode{0x1000_ta, std::move(bytes), isa};
    insns_.invalidate_all();
  }
  void start(TraceeAddr at) { encode({gap(GapReason::kStart, {}, at)}); }
  void encode(const std::vector<Record>& records) { encoder_.encode(records, packets_); }

  [[nodiscard]] Bytes finished(TraceeAddr pc) const {
    Bytes whole = packets_;
    encoder_.finish(pc, whole);
    return whole;
  }
  [[nodiscard]] std::vector<IptItem> items(TraceeAddr pc) {
    return test::decode_ipt(finished(pc), code_);
  }
  /// Returns the addresses that ran; fails the test if libipt returns other items.
  [[nodiscard]] Addresses ran(TraceeAddr pc) {
    const std::vector<IptItem> all = items(pc);
    Addresses addresses = test::executed(all);
    EXPECT_EQ(addresses.size(), all.size()) << testing::PrintToString(all);
    return addresses;
  }
  /// Returns the packet names after the start (psb psbend mode pge).
  [[nodiscard]] std::string names(TraceeAddr pc) const {
    const std::string all = test::packet_names(finished(pc));
    const std::string start = "psb psbend mode pge ";
    EXPECT_EQ(all.substr(0, start.size()), start);
    return all.substr(std::min(all.size(), start.size()));
  }

  FlatCode code_{0x1000_ta, {}};
  InsnCache insns_{code_};
  PtEncoder encoder_{insns_};
  Bytes packets_;
};

constexpr IptItem insn(std::uint64_t address) {
  return {IptItem::Kind::kInsn, address, 0};
}
constexpr IptItem gap_to(std::uint64_t address) {
  return {IptItem::Kind::kGap, address, 0};
}
constexpr IptItem lost_to(std::uint64_t address) {
  return {IptItem::Kind::kLost, address, 0};
}

TEST_F(PtEncoderTest, SaysNothingBeforeTheFirstRecord) {
  encode({});
  encoder_.synchronize(packets_);
  encoder_.flush(packets_);
  EXPECT_TRUE(finished(0x1000_ta).empty());
}

TEST_F(PtEncoderTest, StartsAndStopsAtOnePlace) {
  use({0x90});
  start(0x1000_ta);
  EXPECT_EQ(names(0x1000_ta), "fup pgd");
  EXPECT_EQ(ran(0x1000_ta), Addresses{});
}

TEST_F(PtEncoderTest, StopsAtThePcInStraightCode) {
  use({0x90, 0x90, 0x90});
  start(0x1000_ta);
  EXPECT_EQ(ran(0x1002_ta), (Addresses{0x1000, 0x1001}));
}

TEST_F(PtEncoderTest, DirectJumpsNeedNoPacket) {
  use({0xeb, 0x01, 0xf4, 0x90, 0xe9, 0x00, 0x00, 0x00, 0x00, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1003_ta), branch(0x1004_ta, 0x1009_ta)});
  EXPECT_EQ(names(0x100a_ta), "fup pgd");
  EXPECT_EQ(ran(0x100a_ta), (Addresses{0x1000, 0x1003, 0x1004, 0x1009}));
}

TEST_F(PtEncoderTest, ConditionalJumpsAreBits) {
  // 1000: jz 1003; 1002: nop; 1003: jnz 1000; 1005: nop
  use({0x74, 0x01, 0x90, 0x75, 0xfb, 0x90});
  start(0x1000_ta);
  encode(
      {branch(0x1003_ta, 0x1000_ta), branch(0x1000_ta, 0x1003_ta), branch(0x1003_ta, 0x1000_ta)});
  EXPECT_EQ(names(0x1005_ta), "tnt(011100) fup pgd");
  EXPECT_EQ(ran(0x1005_ta),
            (Addresses{0x1000, 0x1002, 0x1003, 0x1000, 0x1003, 0x1000, 0x1002, 0x1003}));
}

TEST_F(PtEncoderTest, AJumpToTheNextInstructionIsTakenWhenThereIsARecord) {
  use({0x74, 0x00, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1002_ta)});
  EXPECT_EQ(names(0x1003_ta), "tnt(1) fup pgd");
  EXPECT_EQ(ran(0x1003_ta), (Addresses{0x1000, 0x1002}));
}

TEST_F(PtEncoderTest, ARecordOfAJumpThatWentNowhereIsOneNotTaken) {
  use({0x74, 0x01, 0x90, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1002_ta)});
  EXPECT_EQ(names(0x1003_ta), "tnt(0) fup pgd");
  EXPECT_EQ(ran(0x1003_ta), (Addresses{0x1000, 0x1002}));
}

TEST_F(PtEncoderTest, CompressesReturnsThatTheCallsPredict) {
  // 1000: call 1006; 1005: nop; 1006: ret
  use({0xe8, 0x01, 0x00, 0x00, 0x00, 0x90, 0xc3});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1006_ta), branch(0x1006_ta, 0x1005_ta)});
  EXPECT_EQ(names(0x1006_ta), "tnt(1) fup pgd");
  EXPECT_EQ(ran(0x1006_ta), (Addresses{0x1000, 0x1006, 0x1005}));
}

TEST_F(PtEncoderTest, AReturnElsewhereIsTold) {
  use({0xe8, 0x01, 0x00, 0x00, 0x00, 0x90, 0xc3, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1006_ta), branch(0x1006_ta, 0x1007_ta)});
  EXPECT_EQ(names(0x1008_ta), "tip fup pgd");
  EXPECT_EQ(ran(0x1008_ta), (Addresses{0x1000, 0x1006, 0x1007}));
}

TEST_F(PtEncoderTest, ACallOfTheNextInstructionPredictsNoReturn) {
  // 1000: call 1005; 1005: ret. The return goes to 1005.
  use({0xe8, 0x00, 0x00, 0x00, 0x00, 0xc3});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1005_ta), branch(0x1005_ta, 0x1005_ta)});
  EXPECT_EQ(names(0x1005_ta), "tip fup pgd");
  EXPECT_EQ(ran(0x1005_ta), (Addresses{0x1000, 0x1005}));
}

TEST_F(PtEncoderTest, RemembersSixtyFourCalls) {
  use({0xff, 0xd0, 0xc3});  // call rax; ret
  start(0x1000_ta);
  constexpr std::size_t kDepth = 70;
  std::vector<Record> records(kDepth, branch(0x1000_ta, 0x1000_ta));
  records.push_back(branch(0x1000_ta, 0x1002_ta));
  for (std::size_t i = 0; i < kDepth; ++i) records.push_back(branch(0x1002_ta, 0x1002_ta));
  encode(records);
  std::string expected;
  for (std::size_t i = 0; i < kDepth + 1; ++i) expected += "tip ";
  // 64 predicted returns, then those whose calls were dropped.
  for (int i = 0; i < 10; ++i) expected += "tnt(111111) ";
  expected += "tnt(1111) ";
  for (std::size_t i = 64; i < kDepth; ++i) expected += "tip ";
  EXPECT_EQ(names(0x1002_ta), expected + "fup pgd");
  Addresses addresses(kDepth + 1, 0x1000);
  addresses.insert(addresses.end(), kDepth, 0x1002);
  EXPECT_EQ(ran(0x1002_ta), addresses);
}

TEST_F(PtEncoderTest, ForgetsCallsAtASynchronization) {
  use({0xe8, 0x01, 0x00, 0x00, 0x00, 0x90, 0xc3});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1006_ta)});
  encoder_.synchronize(packets_);
  encode({branch(0x1006_ta, 0x1005_ta)});
  EXPECT_EQ(names(0x1006_ta), "psb mode fup psbend tip fup pgd");
  EXPECT_EQ(ran(0x1006_ta), (Addresses{0x1000, 0x1006, 0x1005}));
}

TEST_F(PtEncoderTest, TellsWhereSystemCallsComeBackTo) {
  // 1000: jz; syscall; jz; int 0x80; jz; nop
  use({0x74, 0x10, 0x0f, 0x05, 0x74, 0x10, 0xcd, 0x80, 0x74, 0x10, 0x90});
  start(0x1000_ta);
  EXPECT_EQ(names(0x100a_ta), "tnt(0) tip tnt(0) tip tnt(0) fup pgd");
  EXPECT_EQ(ran(0x100a_ta), (Addresses{0x1000, 0x1002, 0x1004, 0x1006, 0x1008}));
  EXPECT_EQ(names(0x1004_ta), "tnt(0) tip fup pgd");
  EXPECT_EQ(ran(0x1004_ta), (Addresses{0x1000, 0x1002}));
}

TEST_F(PtEncoderTest, ASystemCallMayComeBackElsewhere) {
  use({0x0f, 0x05, 0xf4, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1003_ta)});
  EXPECT_EQ(ran(0x1004_ta), (Addresses{0x1000, 0x1003}));
}

TEST_F(PtEncoderTest, FollowsInterruptsAndFarTransfersThatComeBack) {
  // int3; int1; int 3; iretq; retf; call far [rax]; jmp far [rax]; sysenter
  use({0xcc, 0xf1, 0xcd, 0x03, 0x48, 0xcf, 0xcb, 0xff, 0x18, 0xff, 0x28, 0x0f, 0x34, 0x90});
  start(0x1000_ta);
  EXPECT_EQ(ran(0x100e_ta),
            (Addresses{0x1000, 0x1001, 0x1002, 0x1004, 0x1006, 0x1007, 0x1009, 0x100b, 0x100d}));
}

TEST_F(PtEncoderTest, SignalsArriveBetweenInstructions) {
  use({0x90, 0x90, 0x90, 0x90});
  start(0x1000_ta);
  encode({async_transfer(0x1001_ta, 0x1003_ta)});
  EXPECT_EQ(names(0x1004_ta), "fup tip fup pgd");
  EXPECT_EQ(ran(0x1004_ta), (Addresses{0x1000, 0x1003}));
}

TEST_F(PtEncoderTest, SignalsMayFollowEachOther) {
  use({0x90, 0x90, 0x90, 0x90});
  start(0x1000_ta);
  encode({async_transfer(0x1000_ta, 0x1002_ta), async_transfer(0x1002_ta, 0x1001_ta),
          async_transfer(0x1001_ta, 0x1001_ta)});
  EXPECT_EQ(ran(0x1002_ta), (Addresses{0x1001}));
}

TEST_F(PtEncoderTest, ASignalMayArriveBehindASystemCall) {
  use({0x0f, 0x05, 0x90});
  start(0x1000_ta);
  encode({async_transfer(0x1002_ta, 0x1000_ta)});
  EXPECT_EQ(names(0x1000_ta), "tip fup tip fup pgd");
  EXPECT_EQ(ran(0x1000_ta), (Addresses{0x1000}));
}

TEST_F(PtEncoderTest, AFaultLeavesItsInstructionUnexecuted) {
  use({0x90, 0x8b, 0x00, 0x90});  // nop; mov eax, [rax]; nop
  start(0x1000_ta);
  encode({async_transfer(0x1001_ta, 0x1003_ta)});
  EXPECT_EQ(ran(0x1004_ta), (Addresses{0x1000, 0x1003}));
}

TEST_F(PtEncoderTest, AJumpToNowhereFaultsThere) {
  use({0xff, 0xe0, 0x90});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0xdead'0000_ta), async_transfer(0xdead'0000_ta, 0x1002_ta)});
  EXPECT_EQ(ran(0x1003_ta), (Addresses{0x1000, 0x1002}));
}

TEST_F(PtEncoderTest, ABranchFromAPlainInstructionLeavesItUnexecuted) {
  // Happens when a transaction aborts.
  use({0x90, 0x90, 0x90});
  start(0x1000_ta);
  encode({branch(0x1001_ta, 0x1000_ta)});
  EXPECT_EQ(ran(0x1002_ta), (Addresses{0x1000, 0x1000, 0x1001}));
}

TEST_F(PtEncoderTest, UndecodableCodeIsAGap) {
  use({0x90, 0x06, 0xff, 0xff, 0x90, 0x90});  // 06 is invalid in 64-bit code.
  start(0x1000_ta);
  encode({branch(0x1003_ta, 0x1004_ta)});
  EXPECT_EQ(items(0x1005_ta), (std::vector<IptItem>{insn(0x1000), gap_to(0x1004), insn(0x1004)}));
}

TEST_F(PtEncoderTest, UnreadableCodeIsAGapForEveryKindOfRecord) {
  use({0x74, 0x00, 0x90});
  for (const Record& record : {branch(0x1008_ta, 0x1002_ta), async_transfer(0x1008_ta, 0x1002_ta),
                               gap(GapReason::kNotRecorded, 0x1008_ta, 0x1002_ta)}) {
    packets_.clear();
    encoder_.restart();
    start(0x1000_ta);
    encode({record});
    EXPECT_EQ(items(0x1003_ta),
              (std::vector<IptItem>{insn(0x1000), insn(0x1002), gap_to(0x1002), insn(0x1002)}));
  }
}

TEST_F(PtEncoderTest, StopsWhereThePcCannotBeReached) {
  use({0x90, 0xeb, 0x00, 0x90});
  start(0x1000_ta);
  EXPECT_EQ(items(0x1003_ta), std::vector<IptItem>{});       // After a jump.
  EXPECT_EQ(items(0x0fff_ta), std::vector<IptItem>{});       // Before the block.
  EXPECT_EQ(items(0x1002_ta), std::vector<IptItem>{});       // Inside an instruction.
  EXPECT_EQ(items(0xffff'ffff_ta), std::vector<IptItem>{});  // Far away.
}

TEST_F(PtEncoderTest, ADirectJumpElsewhereIsAGap) {
  use({0x90, 0xeb, 0x00, 0x90, 0xf4, 0x90});
  start(0x1000_ta);
  encode({branch(0x1001_ta, 0x1005_ta)});
  EXPECT_EQ(items(0x1006_ta), (std::vector<IptItem>{insn(0x1000), gap_to(0x1005), insn(0x1005)}));
}

TEST_F(PtEncoderTest, CodeThatCannotHaveRunIsLeftOut) {
  use({0x90, 0xeb, 0x00, 0x90, 0x75, 0x00, 0x90});
  start(0x1000_ta);
  encode({branch(0x1004_ta, 0x1006_ta)});  // After a jump.
  EXPECT_EQ(items(0x1007_ta), (std::vector<IptItem>{insn(0x1006)}));
}

TEST_F(PtEncoderTest, GapsAreShown) {
  use({0x90, 0x90, 0x90, 0x90});
  start(0x1000_ta);
  encode({gap(GapReason::kPcChanged, 0x1001_ta, 0x1002_ta)});
  EXPECT_EQ(items(0x1003_ta), (std::vector<IptItem>{insn(0x1000), gap_to(0x1002), insn(0x1002)}));
  encode({gap(GapReason::kOverflow, {}, 0x1001_ta)});
  encode({gap(GapReason::kOverflow, 0x1002_ta, 0x1003_ta)});
  EXPECT_EQ(items(0x1004_ta), (std::vector<IptItem>{insn(0x1000), gap_to(0x1002), lost_to(0x1001),
                                                    insn(0x1001), lost_to(0x1003), insn(0x1003)}));
}

TEST_F(PtEncoderTest, AGapThatEndsWhereItBeganIsShownUnlessThePcWasSet) {
  use({0x90, 0x90, 0x90});
  start(0x1000_ta);
  encode({gap(GapReason::kNotRecorded, 0x1001_ta, 0x1001_ta),
          gap(GapReason::kPcChanged, 0x1002_ta, 0x1002_ta)});
  EXPECT_EQ(items(0x1003_ta),
            (std::vector<IptItem>{insn(0x1000), lost_to(0x1001), insn(0x1001), insn(0x1002)}));
}

TEST_F(PtEncoderTest, ReturnsAreNotPredictedAcrossAGap) {
  use({0xe8, 0x01, 0x00, 0x00, 0x00, 0x90, 0xc3});
  start(0x1000_ta);
  encode({branch(0x1000_ta, 0x1006_ta), gap(GapReason::kNotRecorded, 0x1006_ta, 0x1006_ta),
          branch(0x1006_ta, 0x1005_ta)});
  EXPECT_EQ(names(0x1006_ta), "fup pgd ovf fup tip fup pgd");
}

TEST_F(PtEncoderTest, AnExecStartsAnotherTrace) {
  use({0x90, 0x90}, arch::Isa::kI386);
  start(0x1000_ta);
  encode({gap(GapReason::kExec, {}, 0x1001_ta)});
  EXPECT_EQ(names(0x1002_ta), "fup pgd psb psbend mode pge fup pgd");
  EXPECT_EQ(items(0x1002_ta), (std::vector<IptItem>{insn(0x1001)}));
}

TEST_F(PtEncoderTest, ThirtyTwoBitCodeIsSaidToBe) {
  use({0x40, 0x90}, arch::Isa::kI386);  // inc eax; nop: a single instruction in 64-bit code.
  start(0x1000_ta);
  EXPECT_EQ(ran(0x1002_ta), (Addresses{0x1000, 0x1001}));
}

TEST_F(PtEncoderTest, SeesCodeThatChanged) {
  use({0x75, 0x01, 0x90, 0xff, 0xe0});
  start(0x1000_ta);
  encode({branch(0x1003_ta, 0x1000_ta)});
  code_.bytes()[0] = 0x90;
  code_.bytes()[1] = 0x90;
  insns_.invalidate(0x1000_ta, 0x1002_ta);
  encode({branch(0x1003_ta, 0x1000_ta)});
  EXPECT_EQ(names(0x1000_ta), "tnt(0) tip tip fup pgd");
}

TEST_F(PtEncoderTest, ARepeatedStringInstructionIsOne) {
  use({0xf3, 0xa4, 0x90});
  start(0x1000_ta);
  EXPECT_EQ(ran(0x1000_ta), Addresses{});
  EXPECT_EQ(ran(0x1003_ta), (Addresses{0x1000, 0x1002}));
}

}  // namespace
}  // namespace backtrail::decoder
