// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_packets.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "test/support/ipt_oracle.hpp"

namespace backtrail::decoder {
namespace {

using namespace literals;
using Bytes = std::vector<std::uint8_t>;

Bytes written(const std::function<void(PacketWriter&)>& write) {
  PacketState state;
  Bytes out;
  {
    PacketWriter writer{state, out};
    write(writer);
    writer.flush();
  }
  return out;
}

TEST(PacketWriter, WritesTheDocumentedBytes) {
  EXPECT_EQ(written([](PacketWriter& w) { w.psb(); }),
            (Bytes{2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82}));
  EXPECT_EQ(written([](PacketWriter& w) { w.psbend(); }), (Bytes{0x02, 0x23}));
  EXPECT_EQ(written([](PacketWriter& w) { w.ovf(); }), (Bytes{0x02, 0xf3}));
  EXPECT_EQ(written([](PacketWriter& w) { w.mode_exec(arch::Isa::kAmd64); }), (Bytes{0x99, 0x01}));
  EXPECT_EQ(written([](PacketWriter& w) { w.mode_exec(arch::Isa::kI386); }), (Bytes{0x99, 0x02}));
  EXPECT_EQ(written([](PacketWriter& w) { w.tip_pgd(); }), (Bytes{0x01}));
  EXPECT_EQ(written([](PacketWriter& w) { w.taken(); }), (Bytes{0x06}));
  EXPECT_EQ(written([](PacketWriter& w) { w.not_taken(1); }), (Bytes{0x04}));
}

TEST(PacketWriter, PutsSixBranchesInAByteOldestFirst) {
  const Bytes out = written([](PacketWriter& w) {
    w.taken();
    w.not_taken(2);
    w.taken();
    w.taken();
    w.not_taken(1);
    w.taken();
  });
  EXPECT_EQ(out, (Bytes{0b1'100110'0, 0b1'1'0}));
  EXPECT_EQ(test::packet_names(out), "tnt(100110) tnt(1)");
}

TEST(PacketWriter, WritesManyBranchesNotTaken) {
  for (const std::uint32_t count : {5U, 6U, 47U, 48U, 49U, 95U, 96U, 97U, 1000U}) {
    const Bytes out = written([=](PacketWriter& w) {
      w.taken();
      w.not_taken(count);
      w.taken();
    });
    std::string bits;
    for (const char c : test::packet_names(out)) {
      if (c == '0' || c == '1') bits += c;
    }
    EXPECT_EQ(bits, "1" + std::string(count, '0') + "1");
    EXPECT_EQ(out.size(), (count + 2 + 5) / 6);
  }
}

TEST(PacketWriter, WritesPendingBranchesBeforeAnyOtherPacket) {
  EXPECT_EQ(test::packet_names(written([](PacketWriter& w) {
              w.taken();
              w.tip(0x1000_ta);
              w.taken();
              w.fup(0x1000_ta);
              w.taken();
              w.tip_pgd();
              w.taken();
              w.psb();
            })),
            "tnt(1) tip tnt(1) fup tnt(1) pgd tnt(1) psb");
}

TEST(PacketWriter, CompressesAddressesAgainstTheLastOne) {
  const Bytes out = written([](PacketWriter& w) {
    w.fup(0x5555'5555'1234_ta);  // There is no address to compress against.
    w.tip(0x5555'5555'9876_ta);
    w.tip(0x5555'5555'9876_ta);
    w.tip(0x5555'1111'9876_ta);
    w.tip_pge(0xffff'ffff'ff60'0000_ta);
    w.tip(0x1234'5678'9abc'def0_ta);  // The address is not canonical.
  });
  EXPECT_EQ(out, (Bytes{0x7d, 0x34, 0x12, 0x55, 0x55, 0x55, 0x55,  //
                        0x2d, 0x76, 0x98,                          //
                        0x2d, 0x76, 0x98,                          //
                        0x4d, 0x76, 0x98, 0x11, 0x11,              //
                        0x71, 0x00, 0x00, 0x60, 0xff, 0xff, 0xff,  //
                        0xcd, 0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12}));
}

TEST(PacketWriter, CompressesAgainstNothingAfterPsbAndOvf) {
  EXPECT_EQ(written([](PacketWriter& w) {
              w.tip(0x1000_ta);
              w.ovf();
              w.fup(0x1000_ta);
            }),
            (Bytes{0x6d, 0, 0x10, 0, 0, 0, 0, 0x02, 0xf3, 0x7d, 0, 0x10, 0, 0, 0, 0}));
  const Bytes after_psb = written([](PacketWriter& w) {
    w.tip(0x1000_ta);
    w.psb();
    w.fup(0x1000_ta);
  });
  EXPECT_EQ(after_psb.size(), 7U + 16 + 7);
}

TEST(PacketWriter, ACopiedStateLeavesTheOriginalAlone) {
  PacketState state;
  Bytes out;
  PacketWriter{state, out}.taken();
  PacketState copy = state;
  Bytes other;
  PacketWriter{copy, other}.tip(0x1000_ta);
  EXPECT_EQ(test::packet_names(other), "tnt(1) tip");
  EXPECT_TRUE(out.empty());
  PacketWriter{state, out}.tip(0x1000_ta);
  EXPECT_EQ(out, other);
}

}  // namespace
}  // namespace backtrail::decoder
