// SPDX-License-Identifier: Apache-2.0
#include "server/transport/outbox.hpp"

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

TEST(Outbox, WithoutAcknowledgementsEverythingGoesAtOnce) {
  Outbox outbox;
  outbox.add_packet("$a#61", false);
  outbox.add_notification("%n#6e");
  outbox.add_packet("$b#62", false);
  EXPECT_EQ(outbox.take_ready(), "$a#61%n#6e$b#62");
  EXPECT_FALSE(outbox.has_ready());
}

TEST(Outbox, OnePacketAtATimeUntilAcknowledged) {
  Outbox outbox;
  outbox.add_packet("$a#61", true);
  outbox.add_packet("$b#62", true);
  outbox.add_packet("$c#63", true);
  EXPECT_EQ(outbox.take_ready(), "$a#61");
  outbox.on_ack();
  EXPECT_EQ(outbox.take_ready(), "$b#62");
  outbox.on_ack();
  EXPECT_EQ(outbox.take_ready(), "$c#63");
  outbox.on_ack();
  EXPECT_EQ(outbox.size_bytes(), 0U);
}

TEST(Outbox, NackSendsTheSamePacketAgain) {
  Outbox outbox;
  outbox.add_packet("$a#61", true);
  EXPECT_EQ(outbox.take_ready(), "$a#61");
  outbox.on_nack();
  outbox.on_nack();
  EXPECT_EQ(outbox.take_ready(), "$a#61$a#61");
  outbox.on_ack();
  outbox.on_nack();
  EXPECT_FALSE(outbox.has_ready()) << "acknowledged packets are not sent again";
}

TEST(Outbox, NacksAreAnsweredABoundedNumberOfTimes) {
  Outbox outbox;
  outbox.add_packet(std::string(1000, 'x'), true);
  for (int i = 0; i < 100000; ++i) outbox.on_nack();
  EXPECT_LT(outbox.size_bytes(), 20000U);
  outbox.on_ack();
  outbox.add_packet("$b#62", true);
  (void)outbox.take_ready();
  outbox.on_nack();
  EXPECT_EQ(outbox.take_ready(), "$b#62") << "every packet has its own count";
}

TEST(Outbox, ThePacketAfterTheLastAcknowledgedOneIsNotHeld) {
  Outbox outbox;
  outbox.add_packet("$OK#9a", true);
  outbox.add_packet("$b#62", false);
  outbox.add_packet("$c#63", false);
  EXPECT_EQ(outbox.take_ready(), "$OK#9a");
  outbox.on_ack();
  EXPECT_EQ(outbox.take_ready(), "$b#62$c#63");
}

TEST(Outbox, AClientsNextPacketAcknowledgesOurs) {
  Outbox outbox;
  outbox.add_packet("$a#61", true);
  outbox.add_packet("$b#62", true);
  (void)outbox.take_ready();
  outbox.on_client_packet();
  EXPECT_EQ(outbox.take_ready(), "$b#62");
}

TEST(Outbox, NotificationsKeepTheirPlaceAmongHeldPackets) {
  Outbox outbox;
  outbox.add_packet("$a#61", true);
  outbox.add_packet("$OK#9a", true);
  outbox.add_notification("%n#6e");
  outbox.add_acknowledgement('+');
  EXPECT_EQ(outbox.take_ready(), "$a#61+");
  outbox.on_ack();
  EXPECT_EQ(outbox.take_ready(), "$OK#9a");
  outbox.on_ack();
  EXPECT_EQ(outbox.take_ready(), "%n#6e");
}

TEST(Outbox, TheEndReleasesEverything) {
  Outbox outbox;
  outbox.add_packet("$a#61", true);
  outbox.add_packet("$b#62", true);
  outbox.add_packet("$c#63", true);
  outbox.release_all();
  EXPECT_EQ(outbox.take_ready(), "$a#61$b#62$c#63");
}

}  // namespace
}  // namespace backtrail::server
