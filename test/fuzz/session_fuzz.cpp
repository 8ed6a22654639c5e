// SPDX-License-Identifier: Apache-2.0
// Sends packets of a hostile client. The input is a list of packets, each after its length in two
// bytes, with events in between.

#include <cstdint>
#include <string_view>

#include "server/rsp/binary_escape.hpp"
#include "server/session/session.hpp"
#include "test/support/fake_target.hpp"

namespace {

using backtrail::test::FakeTarget;
using namespace backtrail::server;

/// Checks that a payload does not exceed the promised size and contains no framing character.
class CheckingSink : public PacketSink {
 public:
  void send_packet(std::string payload) override { check(payload); }
  void send_notification(std::string payload) override { check(payload); }

 private:
  static void check(std::string_view payload) {
    if (payload.size() > Session::kPacketSize) __builtin_trap();
    if (payload.find_first_of("$#") != std::string_view::npos) __builtin_trap();
  }
};

/// Returns true for packets that reach files and settings of the fuzzing machine.
bool reaches_outside(std::string_view packet) {
  for (const std::string_view prefix : {"vFile:", "qRcmd,", "qXfer:osdata:"}) {
    if (packet.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FakeTarget target;
  const ThreadId first = target.add_process(1);
  target.add_thread(1, 2);
  target.wanted = {{"nptl_version", "_thread_db_sizeof_pthread"}, {"more"}};
  ServerState state;
  CheckingSink sink;
  Session session{target, state, sink};
  std::string_view input{reinterpret_cast<const char*>(data), size};
  while (input.size() >= 2) {
    const auto high = static_cast<unsigned char>(input[0]);
    const auto low = static_cast<unsigned char>(input[1]);
    const std::string_view packet = input.substr(2, static_cast<std::size_t>(high) * 256 + low);
    input.remove_prefix(2 + packet.size());
    if (packet.empty()) {
      session.on_interrupt();
      target.post({.thread = first, .kind = backtrail::tracee::StopKind::kStep, .exec_path = {}});
      session.on_target_events();
    } else if (!reaches_outside(packet)) {
      session.on_packet(packet);
    }
    for (const auto& breakpoint : target.breakpoints) {
      if (breakpoint.condition) breakpoint.condition(first);
    }
    target.breakpoints.clear();
  }
  return 0;
}
