// SPDX-License-Identifier: Apache-2.0
#include "server/transport/port_owner.hpp"

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:0929 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:1F90 0100007F:0929 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 1 0000000000000000 20 4 30 10 -1\n";

TEST(PortOwner, FindsTheListeningSocket) {
  EXPECT_EQ(listening_inode(kTable, 2345), 4711U);
}

TEST(PortOwner, ConnectionsDoNotListen) {
  EXPECT_EQ(listening_inode(kTable, 8080), std::nullopt);
}

TEST(PortOwner, DamagedTablesHaveNoOwner) {
  for (std::size_t length = 0; length < kTable.size(); ++length) {
    const auto inode = listening_inode(kTable.substr(0, length), 2345);
    EXPECT_TRUE(!inode || *inode <= 4711U) << length;
  }
  EXPECT_EQ(listening_inode("\n\n x\n 0: a b 0A\n", 0), std::nullopt);
}

}  // namespace
}  // namespace backtrail::server
