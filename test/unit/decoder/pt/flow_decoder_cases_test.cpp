// SPDX-License-Identifier: Apache-2.0
// Checks, case by case, that FlowDecoder agrees with libipt on what user programs produce.

#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "test/unit/decoder/decoded.hpp"
#include "test/unit/decoder/flat_code.hpp"
#include "test/unit/decoder/packets_from.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using decoder::InsnCache;
using decoder::PacketWriter;
using decoder::PtDecoder;
using decoder::Record;

using Bytes = std::vector<std::uint8_t>;

TEST(FlowDecoderCases, SystemCallsStopTracing) {
  // 1000: jz 1003; 1002: nop; 1003: syscall; 1005: jmp 1008; 1007: nop; 1008: ret
  FlatCode code{0x1000_ta, {0x74, 0x01, 0x90, 0x0f, 0x05, 0xeb, 0x01, 0x90, 0xc3}};
  for (const TraceeAddr back : {0x1005_ta, 0x1008_ta}) {
    const Bytes packets = from_0x1000([&](PacketWriter& writer) {
      writer.taken();
      writer.tip_pgd();
      writer.tip_pge(back);
      writer.fup(0x1008_ta);
      writer.tip_pgd();
    });
    const Record last = back == 0x1005_ta
                            ? decoder::branch(0x1005_ta, 0x1008_ta)
                            : decoder::gap(decoder::GapReason::kUnseenAsync, 0x1005_ta, back);
    for (const bool alone : {false, true}) {
      const Decoded decoded = decode(code, packets, alone, std::nullopt);
      ASSERT_EQ(decoded.records.size(), 3U) << alone;
      EXPECT_EQ(decoded.records[1], decoder::branch(0x1000_ta, 0x1003_ta));
      EXPECT_EQ(decoded.records[2], last);
      EXPECT_EQ(decoded.helped, alone ? 1U : 0U);
    }
  }
}

TEST(FlowDecoderCases, ALoopWithoutPacketsEnds) {
  FlatCode code{0x1000_ta, {0xeb, 0xfe}};
  EXPECT_TRUE(agree(code, from_0x1000([](PacketWriter&) {})));
  for (const TraceeAddr at : {0x1000_ta, 0x1001_ta}) {
    EXPECT_TRUE(agree(code, from_0x1000([&](PacketWriter& writer) {
                        writer.fup(at);
                        writer.tip_pgd();
                      })));
  }
  EXPECT_TRUE(agree(code, from_0x1000([](PacketWriter& writer) { writer.taken(); })));
}

TEST(FlowDecoderCases, SixtyFourReturnsAreCompressed) {
  // 1000: call 1006 (1005 would be a call of the next instruction); nop; jz 1000; ret
  FlatCode code{0x1000_ta, {0xe8, 0x01, 0, 0, 0, 0x90, 0x74, 0xf8, 0xc3}};
  for (const unsigned depth : {3U, 63U, 64U, 65U, 66U, 200U}) {
    const Bytes packets = from_0x1000([&](PacketWriter& writer) {
      for (unsigned i = 1; i < depth; ++i) writer.taken();
      writer.not_taken(1);
      // Each return leads to 1005, which runs into the jump and the next return.
      for (unsigned i = 0; i < depth; ++i) {
        writer.taken();
        writer.not_taken(1);
      }
    });
    EXPECT_TRUE(agree(code, packets)) << depth;
  }
}

TEST(FlowDecoderCases, AnAddressInAPsbJustBeforeTracingBeginsMayBeWrong) {
  const decoder::CpuIdentity skylake{6, 0x5e, 3};
  FlatCode code{0x1000_ta, {0x90, 0x90, 0xc3}};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.tip_pge(0x1001_ta);
    writer.fup(0x1002_ta);
    writer.tip_pgd();
  });
  std::uint64_t helped = 0;
  EXPECT_TRUE(agree(code, packets, &helped, skylake));
  EXPECT_EQ(helped, 0U);
  EXPECT_EQ(decode(code, packets, false, skylake).records.at(0).to, 0x1001_ta);
  EXPECT_TRUE(agree(code, packets));
}

TEST(FlowDecoderCases, PacketsOfOtherFeaturesAreLibiptsToRead) {
  FlatCode code{0x1000_ta, {0x90, 0x74, 0xfd, 0xc3}};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.taken();
    writer.flush();
  });
  const std::vector<Bytes> others{
      {0x02, 0x12, 1, 2, 3, 4},                   // PTWRITE
      {0x02, 0x22, 0, 0},                         // PWRE
      {0x02, 0x62},                               // EXSTOP
      {0x02, 0x83},                               // TraceStop
      {0x99, 0x20},                               // MODE.TSX
      {0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8}  // MNT
  };
  for (const Bytes& other : others) {
    Bytes whole = packets;
    add(whole, other);
    add(whole, Bytes{0x04, 0x06});
    std::uint64_t helped = 0;
    EXPECT_TRUE(agree(code, whole, &helped));
    EXPECT_NE(helped, 0U);
  }
}

/// Code that can change.
class ChangingCode : public decoder::CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    FlatCode flat{0x1000_ta, bytes};
    return flat.read_code(address, out);
  }
  std::vector<std::uint8_t> bytes;
};

TEST(FlowDecoderCases, ChangedCodeIsReadAgain) {
  ChangingCode code;
  code.bytes = {0x90, 0x74, 0x01, 0x90, 0xc3};  // 1001: jz 1004
  InsnCache insns{code};
  PtDecoder decoder{insns};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.taken();
    writer.tip(0x1000_ta);
  });
  std::vector<Record> before;
  decoder.decode(packets, before);
  ASSERT_EQ(before.size(), 2U);
  EXPECT_EQ(before[1], decoder::branch(0x1001_ta, 0x1004_ta));
  code.bytes = {0x75, 0x01, 0x90, 0xc3};  // 1000: jnz 1003
  std::vector<Record> after;
  decoder.decode(packets, after);
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[1], decoder::branch(0x1000_ta, 0x1003_ta));
  EXPECT_EQ(decoder.times_helped(), 0U);
}

}  // namespace
}  // namespace backtrail::test
