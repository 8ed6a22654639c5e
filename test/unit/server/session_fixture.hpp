// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A session on a FakeTarget, and the packets it sent.

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rsp/hex.hpp"
#include "server/session/session.hpp"
#include "test/support/fake_target.hpp"

namespace backtrail::server {

class RecordingSink : public PacketSink {
 public:
  void send_packet(std::string payload) override { packets.push_back(std::move(payload)); }
  void send_notification(std::string payload) override {
    notifications.push_back(std::move(payload));
  }

  std::vector<std::string> packets;
  std::vector<std::string> notifications;
};

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(test::FakeAbilities abilities = {}) : target{abilities} {
    // Keep notices off the terminal.
    state.launch.stdio_is_protocol = true;
  }

  /// Sends a packet. Returns the one reply, or "(none)" if there is none yet.
  std::string ask(std::string_view packet) {
    sink.packets.clear();
    session.on_packet(packet);
    if (sink.packets.empty()) return "(none)";
    EXPECT_EQ(sink.packets.size(), 1U) << packet;
    return sink.packets.back();
  }

  /// Posts an event. Returns the last packet that the session sends, or "(none)".
  std::string after(tracee::StopEvent event) {
    sink.packets.clear();
    target.post(std::move(event));
    session.on_target_events();
    return sink.packets.empty() ? "(none)" : sink.packets.back();
  }

  /// Sends the qSupported of a gdb with all features.
  void offer_all() {
    ask("qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+;exec-events+;"
        "vContSupported+;QThreadEvents+;no-resumed+");
  }

  static std::string hex(std::string_view text) { return rsp::to_hex(text); }

  test::FakeTarget target;
  ServerState state;
  RecordingSink sink;
  Session session{target, state, sink};
};

}  // namespace backtrail::server
