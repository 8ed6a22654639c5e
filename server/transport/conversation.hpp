// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server loop's interface to a client's session. The program implements it with a Session,
/// tests with fakes.

#include <functional>
#include <memory>
#include <string_view>

#include "server/session/session.hpp"

namespace backtrail::server {

class Conversation {
 public:
  virtual ~Conversation() = default;
  virtual void on_packet(std::string_view payload) = 0;
  virtual void on_interrupt() = 0;
  /// Called whenever the target may have events.
  virtual void on_target_events() = 0;
  [[nodiscard]] virtual bool no_ack() const = 0;
  [[nodiscard]] virtual SessionFate fate() const = 0;
};

/// Starts the conversation of a new connection. The sink outlives it.
using ConversationFactory = std::function<std::unique_ptr<Conversation>(PacketSink&)>;

}  // namespace backtrail::server
