// SPDX-License-Identifier: Apache-2.0
#include "server/session/packet_text.hpp"

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

TEST(PacketText, TakesHexUpToTheNextOther) {
  PacketText text{"1aF,rest"};
  EXPECT_EQ(text.take_hex(), 0x1afU);
  EXPECT_EQ(text.rest(), ",rest");
}

TEST(PacketText, TakesNoNumberWhereThereIsNone) {
  PacketText text{",1"};
  EXPECT_EQ(text.take_hex(), std::nullopt);
  EXPECT_EQ(text.rest(), ",1");
  EXPECT_EQ(PacketText{""}.take_hex(), std::nullopt);
  EXPECT_EQ(PacketText{"-1"}.take_hex(), std::nullopt);
}

TEST(PacketText, RefusesNumbersBeyond64Bits) {
  EXPECT_EQ(PacketText{"ffffffffffffffff"}.take_hex(), 0xffffffffffffffffU);
  EXPECT_EQ(PacketText{"10000000000000000"}.take_hex(), std::nullopt);
}

TEST(PacketText, AcceptsThePrefixWhereItIsAllowed) {
  EXPECT_EQ(PacketText{"0x10"}.take_prefixed_hex(), 0x10U);
  EXPECT_EQ(PacketText{"10"}.take_prefixed_hex(), 0x10U);
  EXPECT_EQ(PacketText{"0x"}.take_prefixed_hex(), std::nullopt);
}

TEST(PacketText, SplitsFields) {
  PacketText text{"a;;b"};
  EXPECT_EQ(text.take_field(';'), "a");
  EXPECT_EQ(text.take_field(';'), "");
  EXPECT_EQ(text.take_field(';'), "b");
  EXPECT_TRUE(text.at_end());
  EXPECT_EQ(text.take_field(';'), "");
}

TEST(PacketText, TakesPairs) {
  PacketText text{"10,20:"};
  const auto pair = take_hex_pair(text);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, 0x10U);
  EXPECT_EQ(pair->second, 0x20U);
  EXPECT_EQ(text.rest(), ":");
  for (const char* bad : {"", "10", "10,", ",20", "10;20", "x,1"}) {
    PacketText bad_text{bad};
    EXPECT_FALSE(take_hex_pair(bad_text)) << bad;
  }
}

}  // namespace
}  // namespace backtrail::server
