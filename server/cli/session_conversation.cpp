// SPDX-License-Identifier: Apache-2.0
#include "server/cli/session_conversation.hpp"

namespace backtrail::server {
namespace {

class SessionConversation final : public Conversation {
 public:
  SessionConversation(Target& target, ServerState& state, PacketSink& sink)
      : session_{target, state, sink} {}
  void on_packet(std::string_view payload) override { session_.on_packet(payload); }
  void on_interrupt() override { session_.on_interrupt(); }
  void on_target_events() override { session_.on_target_events(); }
  [[nodiscard]] bool no_ack() const override { return session_.no_ack(); }
  [[nodiscard]] SessionFate fate() const override { return session_.fate(); }

 private:
  Session session_;
};

}  // namespace

ConversationFactory session_factory(Target& target, ServerState& state) {
  return [&target, &state](PacketSink& sink) {
    return std::make_unique<SessionConversation>(target, state, sink);
  };
}

}  // namespace backtrail::server
