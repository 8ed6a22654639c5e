// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

class HostilePacketsTest : public SessionTest {
 protected:
  HostilePacketsTest() {
    target.add_process(1);
    target.add_thread(1, 2);
    offer_all();
  }
};

constexpr const char* kPackets[] = {
    "qSupported:multiprocess+;swbreak+",
    "Hgp1.1",
    "Hcp1.-1",
    "Tp1.2",
    "qAttached:1",
    "g",
    "p10",
    "P10=0000000000000000",
    "m1000,10",
    "M1000,2:abcd",
    "X1000,2:ab",
    "x1000,4",
    "qSearch:memory:1000;10;ab",
    "qCRC:1000,10",
    "Z0,1000,1;X3,220127;cmds:0,X3,220127",
    "z0,1000,1",
    "vCont;s:p1.1;c:p1.-1",
    "vCont;r1000,1010:p1.1",
    "C05",
    "QPassSignals:e;10",
    "QCatchSyscalls:1;10",
    "QThreadEvents:1",
    "qSymbol::",
    "qSymbol:10:6162",
    "qGetTLSAddr:p1.1,10,20",
    "Qbtrace:bts",
    "Qbtrace-conf:bts:size=0x10000",
    "qXfer:btrace:read:all:0,100",
    "qXfer:threads:read::0,100",
    "qXfer:libraries-svr4:read:start=1;prev=2:0,100",
    "qXfer:siginfo:write::0:ab",
    "QEnvironmentHexEncoded:413d42",
    "QSetWorkingDir:2f",
    "vFile:pread:3,10,0",
};

TEST_F(HostilePacketsTest, EveryPrefixOfEveryPacketIsAnswered) {
  for (const std::string_view packet : kPackets) {
    for (std::size_t length = 0; length < packet.size(); ++length) {
      sink.packets.clear();
      session.on_packet(packet.substr(0, length));
      tracee::StopEvent event;
      event.thread = {1, 1};
      event.kind = tracee::StopKind::kStep;
      target.events.clear();
      target.post(event);
      session.on_target_events();
      target.events.clear();
      EXPECT_FALSE(sink.packets.empty()) << packet.substr(0, length);
    }
  }
  EXPECT_EQ(ask("qC").substr(0, 2), "QC");
}

TEST_F(HostilePacketsTest, HugeNumbersAreRefused) {
  for (const char* packet :
       {"mffffffffffffffff,ffffffffffffffff", "m0,ffffffff", "xffffffffffffffff,ffffffffffffffff",
        "Mffffffffffffffff,ffffffffffffffff:00", "Xffffffffffffffff,1:a",
        "qCRC:ffffffffffffffff,ffffffffffffffff", "pffffffffffffffff",
        "qXfer:auxv:read:x:ffffffffffffffff,ffffffffffffffff", "Tpffffffff.ffffffff",
        "Z0,ffffffffffffffff,ffffffffffffffff", "vCont;Cffffffffffffffff"}) {
    EXPECT_EQ(ask(packet), "E01") << packet;
  }
  EXPECT_EQ(ask("qSearch:memory:ffffffffffffff00;ffffffffffffffff;a"), "E00");
}

TEST_F(HostilePacketsTest, MutatedPacketsNeverBreakTheSession) {
  std::mt19937 random{12345};
  const auto pick = [&random](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>{0, below - 1}(random);
  };
  for (int round = 0; round < 5000; ++round) {
    std::string packet = kPackets[pick(std::size(kPackets))];
    for (std::size_t changes = 1 + pick(3); changes > 0; --changes) {
      packet[pick(packet.size())] = static_cast<char>(pick(256));
    }
    if (packet.starts_with("vFile") || packet.starts_with("k") || packet.starts_with("D")) continue;
    session.on_packet(packet);
    tracee::StopEvent event;
    event.thread = {1, 1};
    event.kind = tracee::StopKind::kStep;
    target.events.clear();
    target.post(event);
    session.on_target_events();
    target.events.clear();
    target.breakpoints.clear();
  }
  ask("QNonStop:0");
  EXPECT_EQ(ask("Hgp1.1"), "OK");
}

}  // namespace
}  // namespace backtrail::server
