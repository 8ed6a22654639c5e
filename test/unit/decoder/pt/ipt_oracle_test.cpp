// SPDX-License-Identifier: Apache-2.0
// Tests that the oracle detects errors.
#include "test/support/ipt_oracle.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "test/unit/decoder/packets_from.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using decoder::PacketWriter;

/// Returns libipt's result for packets after a start at 0x1000.
std::vector<IptItem> said(FlatCode& code, const std::function<void(PacketWriter&)>& write) {
  return decode_ipt(from_0x1000(write), code);
}

/// 1000: jz 1003; 1002: nop; 1003: jmp rax; 1005: nop
FlatCode some_code() {
  return {0x1000_ta, {0x74, 0x01, 0x90, 0xff, 0xe0, 0x90}};
}

TEST(IptOracle, ListsWhatRan) {
  FlatCode code = some_code();
  const auto items = said(code, [](PacketWriter& writer) {
    writer.taken();
    writer.tip(0x1005_ta);
    writer.fup(0x1006_ta);
    writer.tip_pgd();
  });
  EXPECT_EQ(executed(items), (std::vector<std::uint64_t>{0x1000, 0x1003, 0x1005}));
  EXPECT_EQ(items.size(), 3U);
}

TEST(IptOracle, FindsAMissingPacket) {
  FlatCode code = some_code();
  const auto items = said(code, [](PacketWriter& writer) {
    writer.taken();
    writer.fup(0x1005_ta);
    writer.tip_pgd();
  });
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items.back().kind, IptItem::Kind::kError);
}

TEST(IptOracle, FindsAPacketTooMany) {
  FlatCode code = some_code();
  const auto items = said(code, [](PacketWriter& writer) {
    writer.taken();
    writer.tip(0x1005_ta);
    writer.tip(0x1005_ta);
  });
  ASSERT_FALSE(items.empty());
  EXPECT_EQ(items.back().kind, IptItem::Kind::kError);
}

TEST(IptOracle, FindsCodeThatIsMissing) {
  FlatCode code = some_code();
  const auto items = said(code, [](PacketWriter& writer) {
    writer.taken();
    writer.tip(0x5000_ta);
    writer.fup(0x5001_ta);
    writer.tip_pgd();
  });
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(items.back().kind, IptItem::Kind::kError);
  EXPECT_EQ(items.back().address, 0x5000U);
}

TEST(IptOracle, TellsGapsFromLosses) {
  FlatCode code = some_code();
  const auto items = said(code, [](PacketWriter& writer) {
    writer.fup(0x1000_ta);
    writer.tip_pgd();
    writer.tip_pge(0x1002_ta);
    writer.fup(0x1003_ta);
    writer.tip_pgd();
    writer.ovf();
    writer.fup(0x1005_ta);
    writer.fup(0x1006_ta);
    writer.tip_pgd();
  });
  using enum IptItem::Kind;
  // A start before anything ran is no gap.
  EXPECT_EQ(items,
            (std::vector<IptItem>{{kInsn, 0x1002, 0}, {kLost, 0x1005, 0}, {kInsn, 0x1005, 0}}));
}

TEST(IptOracle, SaysNothingOfNothing) {
  FlatCode code = some_code();
  EXPECT_TRUE(decode_ipt({}, code).empty());
  const std::vector<std::uint8_t> no_psb(100, 0);
  EXPECT_TRUE(decode_ipt(no_psb, code).empty());
  EXPECT_EQ(packet_names({}), "");
}

TEST(IptOracle, NamesPackets) {
  const std::vector<std::uint8_t> bytes{0x06, 0x00, 0x02, 0xf3, 0x01, 0x99, 0x01, 0x02};
  EXPECT_EQ(packet_names(bytes), "tnt(1) ovf pgd mode");
  const std::vector<std::uint8_t> bad{0x05};
  EXPECT_NE(packet_names(bad).find("error"), std::string::npos);
}

}  // namespace
}  // namespace backtrail::test
