// SPDX-License-Identifier: Apache-2.0
#include "server/session/session.hpp"

#include <utility>

#include "server/session/events.hpp"
#include "server/session/packet_table.hpp"
#include "server/session/session_context.hpp"

namespace backtrail::server {
namespace {

// Most packets that a client may send ahead during an all-stop resume. gdb sends none.
constexpr std::size_t kMaxWaiting = 64;

}  // namespace

struct Session::Impl {
  Impl(Target& target, ServerState& state, PacketSink& sink) : context{target, state, sink} {}

  SessionContext context;
  std::deque<std::string> waiting;  ///< Packets that arrived while the target ran in all-stop.

  void handle(std::string_view payload);
  void handle_waiting();
};

void Session::Impl::handle(std::string_view payload) {
  const PacketEntry* entry = find_packet(payload);
  Reply reply = entry == nullptr ? Reply::unknown()
                                 : entry->handle(context, payload.substr(entry->name.size()));
  if (reply.payload()) context.sink.send_packet(std::move(*reply.payload()));
}

void Session::Impl::handle_waiting() {
  while (!waiting.empty() && !context.stop_reply_due && context.fate == SessionFate::kServe) {
    const std::string payload = std::move(waiting.front());
    waiting.pop_front();
    handle(payload);
    deliver_events(context);
  }
}

Session::Session(Target& target, ServerState& state, PacketSink& sink)
    : impl_{std::make_unique<Impl>(target, state, sink)} {
  if (state.multi) state.extended = true;
}

Session::~Session() = default;

void Session::on_packet(std::string_view payload) {
  SessionContext& context = impl_->context;
  if (context.fate != SessionFate::kServe) return;
  // `k` is handled at once: killing the program need not wait for its stop.
  if (context.stop_reply_due && payload != "k") {
    if (impl_->waiting.size() >= kMaxWaiting) {
      context.fate = SessionFate::kDisconnect;
      return;
    }
    impl_->waiting.emplace_back(payload);
    return;
  }
  impl_->handle(payload);
  on_target_events();
}

void Session::on_interrupt() {
  RunControl* run = impl_->context.target.run_control();
  // The client may have sent it before it saw that the program had stopped.
  if (run != nullptr) run->interrupt();
}

void Session::on_target_events() {
  if (impl_->context.fate != SessionFate::kServe) return;
  deliver_events(impl_->context);
  impl_->handle_waiting();
}

bool Session::no_ack() const {
  return impl_->context.no_ack;
}

SessionFate Session::fate() const {
  return impl_->context.fate;
}

}  // namespace backtrail::server
