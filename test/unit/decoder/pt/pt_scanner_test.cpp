// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_scanner.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/pt/pt_packets.hpp"
#include "test/support/ipt_oracle.hpp"

namespace backtrail::decoder {
namespace {

std::vector<std::uint8_t> psb() {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < 8; ++i) out.insert(out.end(), {0x02, 0x82});
  return out;
}

PtPacket scan(std::initializer_list<std::uint8_t> bytes) {
  return scan_packet(std::span{bytes.begin(), bytes.size()});
}

TEST(PtScanner, KnowsEveryPacketByItsBytes) {
  EXPECT_EQ(scan({0}), (PtPacket{PtKind::kPad, 1, 0, 0}));
  EXPECT_EQ(scan_packet(psb()), (PtPacket{PtKind::kPsb, 16, 0, 0}));
  EXPECT_EQ(scan({0x02, 0x23}).kind, PtKind::kPsbEnd);
  EXPECT_EQ(scan({0x02, 0xf3}).kind, PtKind::kOvf);
  EXPECT_EQ(scan({0x02, 0x83}).kind, PtKind::kTraceStop);
  EXPECT_EQ(scan({0x02, 0x62}).kind, PtKind::kExStop);
  EXPECT_EQ(scan({0x02, 0xe2}).kind, PtKind::kExStop);
  EXPECT_EQ(scan({0x02, 0x03, 0x18, 0}), (PtPacket{PtKind::kCbr, 4, 0, 0x18}));
  EXPECT_EQ(scan({0x02, 0x43, 1, 2, 3, 4, 5, 6}).size, 8);
  EXPECT_EQ(scan({0x02, 0xa3, 0x0d, 0, 0, 0, 0, 0}), (PtPacket{PtKind::kTnt64, 8, 0, 0x0d}));
  EXPECT_EQ(scan({0x02, 0x12, 1, 0, 0, 0}), (PtPacket{PtKind::kPtw, 6, 0, 1}));
  EXPECT_EQ(scan({0x02, 0xb2, 1, 0, 0, 0, 0, 0, 0, 0}).size, 10);
  EXPECT_EQ(scan({0x99, 0x21}), (PtPacket{PtKind::kMode, 2, 0, 0x21}));
  EXPECT_EQ(scan({0x19, 1, 2, 3, 4, 5, 6, 7}).kind, PtKind::kTsc);
  EXPECT_EQ(scan({0x59, 0x42}), (PtPacket{PtKind::kMtc, 2, 0, 0x42}));
  EXPECT_EQ(scan({0x2d, 0x34, 0x12}), (PtPacket{PtKind::kTip, 3, 1, 0x1234}));
  EXPECT_EQ(scan({0x01}), (PtPacket{PtKind::kTipPgd, 1, 0, 0}));
  EXPECT_EQ(scan({0xdd, 1, 2, 3, 4, 5, 6, 7, 8}).size, 9);
  EXPECT_EQ(scan({0x06}), (PtPacket{PtKind::kTnt8, 1, 0, 1}));     // One taken branch.
  EXPECT_EQ(scan({0xa4}), (PtPacket{PtKind::kTnt8, 1, 0, 0x12}));  // 010010
  EXPECT_EQ(scan({0x0b}), (PtPacket{PtKind::kCyc, 1, 0, 1}));
  EXPECT_EQ(scan({0x07, 0x02}), (PtPacket{PtKind::kCyc, 2, 0, 0x20}));
}

TEST(PtScanner, CutOffPacketsAndNonsenseAreUnknown) {
  EXPECT_EQ(scan({}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x02}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x02, 0x82, 0x02}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x02, 0x43, 1}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x2d, 0x34}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0xad, 1, 2, 3, 4, 5, 6, 7, 8}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x07}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0xd9, 0, 0}).kind, PtKind::kUnknown);
  EXPECT_EQ(scan({0x02, 0xc3, 0x00}).kind, PtKind::kUnknown);
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      for (std::size_t size = 1; size < 24; ++size) {
        std::vector<std::uint8_t> bytes(size, 0xff);
        bytes[0] = static_cast<std::uint8_t>(first);
        if (size > 1) bytes[1] = static_cast<std::uint8_t>(second);
        ASSERT_LE(scan_packet(bytes).size, size);
      }
    }
  }
}

TEST(PtScanner, AddressesJoinTheLastOne) {
  PtLastIp last;
  EXPECT_EQ(last.update(scan({0x6d, 0x56, 0x34, 0x12, 0x00, 0x55, 0x55})), 0x5555'0012'3456U);
  EXPECT_EQ(last.update(scan({0x2d, 0x78, 0x9a})), 0x5555'0012'9a78U);
  EXPECT_EQ(last.update(scan({0x4d, 1, 0, 0, 0x80})), 0x5555'8000'0001U);
  EXPECT_EQ(last.update(scan({0x01})), std::nullopt);
  EXPECT_EQ(last.update(scan({0x6d, 0, 0, 0, 0, 0, 0x80})), 0xffff'8000'0000'0000U);
  EXPECT_EQ(last.update(scan({0x8d, 1, 0, 0, 0, 0, 0})), 0xffff'0000'0000'0001U);
  EXPECT_EQ(last.update(scan({0xcd, 1, 2, 3, 4, 5, 6, 7, 8})), 0x0807'0605'0403'0201U);
}

TEST(PtScanner, CountsWhatOurOwnEncoderWrites) {
  std::vector<std::uint8_t> bytes{1, 2, 3};  // The middle of a packet.
  PacketState state;
  {
    PacketWriter writer{state, bytes};
    writer.psb();
    writer.psbend();
    writer.tip_pge(TraceeAddr{0x1000});
    writer.not_taken(20);
    writer.taken();
    writer.tip(TraceeAddr{0x2000});
    writer.fup(TraceeAddr{0x3000});
    writer.tip_pgd();
  }
  const PtCounts counts = count_packets(bytes);
  EXPECT_EQ(counts.skipped_bytes, 3U);
  EXPECT_EQ(counts.errors, 0U);
  EXPECT_EQ(counts.of(PtKind::kPsb), 1U);
  EXPECT_EQ(counts.of(PtKind::kTnt8), 4U);
  EXPECT_EQ(counts.of(PtKind::kTip), 1U);
  EXPECT_EQ(counts.of(PtKind::kTipPgd), 1U);
}

TEST(PtScanner, AgreesWithLibiptOnRandomStreams) {
  // Packet beginnings, with the number of random bytes that follow.
  const std::vector<std::pair<std::vector<std::uint8_t>, std::size_t>> packets{
      {{0x00}, 0},       {{0x06}, 0},       {{0xa4}, 0},
      {{0x01}, 0},       {{0x2d}, 2},       {{0x4d}, 4},
      {{0x6d}, 6},       {{0x8d}, 6},       {{0xcd}, 8},
      {{0x31}, 2},       {{0x3d}, 2},       {{0x7d}, 6},
      {{0x99, 0x01}, 0}, {{0x99, 0x21}, 0}, {{0x19}, 7},
      {{0x59}, 1},       {{0x0b}, 0},       {{0x07, 0x03, 0x04}, 0},
      {{0x02, 0xf3}, 0}, {{0x02, 0x83}, 0}, {{0x02, 0xa3}, 6},
      {{0x02, 0x43}, 6}, {{0x02, 0x03}, 2}, {{0x02, 0xc8}, 5},
      {{0x02, 0x12}, 4}, {{0x02, 0xb2}, 8}, {{0x02, 0xc3, 0x88}, 8},
      {{0x02, 0x62}, 0}, {{0x02, 0xc2}, 8}, {{0x02, 0x22}, 2},
      {{0x02, 0xa2}, 5}, {{0x02, 0x23}, 0}};
  std::mt19937 random{1234};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint8_t> bytes = psb();
    for (auto n = random() % 100; n != 0; --n) {
      const auto& [opcode, payload] = packets[random() % packets.size()];
      bytes.insert(bytes.end(), opcode.begin(), opcode.end());
      // A long TNT packet needs a stop bit.
      for (std::size_t i = 0; i < payload; ++i)
        bytes.push_back(static_cast<std::uint8_t>(random() % 127 + 1));
    }
    const auto theirs = test::packet_counts(bytes);
    const PtCounts ours = count_packets(bytes);
    EXPECT_EQ(ours.errors, 0U);
    for (std::size_t i = 0; i + 1 < kPtKinds; ++i) {
      const auto kind = static_cast<PtKind>(i);
      const auto found = theirs.find(std::string{to_string(kind)});
      ASSERT_EQ(ours.of(kind), found == theirs.end() ? 0 : found->second)
          << to_string(kind) << " in round " << round;
    }
  }
}

TEST(PtScanner, FindsNoPsbWhereThereIsNoRoomForOne) {
  EXPECT_FALSE(decoder::find_psb({}));
  EXPECT_FALSE(decoder::find_psb({}, 5));
}

}  // namespace
}  // namespace backtrail::decoder
