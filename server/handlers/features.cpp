// SPDX-License-Identifier: Apache-2.0
// qSupported and the other packets at the start of a connection.

#include <array>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/handlers/thread_option_bits.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

/// The feature has a list: "xmlRegisters=i386,arm".
bool names_x86_registers(std::string_view item) {
  constexpr std::string_view kPrefix = "xmlRegisters=";
  if (!item.starts_with(kPrefix)) return false;
  PacketText list{item.substr(kPrefix.size())};
  while (!list.at_end()) {
    if (list.take_field(',') == "i386") return true;
  }
  return false;
}

ClientFeatures parse_client_features(std::string_view list) {
  ClientFeatures client;
  PacketText text{list};
  while (!text.at_end()) {
    const std::string_view item = text.take_field(';');
    if (item == "multiprocess+") client.multiprocess = true;
    if (item == "swbreak+") client.swbreak = true;
    if (item == "hwbreak+") client.hwbreak = true;
    if (item == "fork-events+") client.fork_events = true;
    if (item == "vfork-events+") client.vfork_events = true;
    if (item == "exec-events+") client.exec_events = true;
    if (item == "no-resumed+") client.no_resumed = true;
    if (item == "QThreadOptions+") client.thread_options = true;
    if (item == "error-message+") client.error_message = true;
    if (names_x86_registers(item)) client.x86_registers = true;
  }
  return client;
}

/// Returns the target's features in gdbserver's order.
std::string offered_features(Target& target, const ClientFeatures& client) {
  std::string out = fmt::format("PacketSize={:x}", Session::kPacketSize - 1);
  const auto offer = [&out](std::string_view features) {
    out += ';';
    out += features;
  };
  const bool runs = target.run_control() != nullptr;
  if (runs) offer("QPassSignals+;QProgramSignals+");
  if (target.process_control() != nullptr) {
    offer(
        "QStartupWithShell+;QEnvironmentHexEncoded+;QEnvironmentReset+;QEnvironmentUnset+;"
        "QSetWorkingDir+");
  }
  if (runs) offer("QCatchSyscalls+");
  offer(
      "qXfer:libraries-svr4:read+;augmented-libraries-svr4-read+;qXfer:auxv:read+;"
      "qXfer:siginfo:read+;qXfer:siginfo:write+;qXfer:features:read+;QStartNoAckMode+;"
      "qXfer:osdata:read+;multiprocess+");
  if (runs) offer("fork-events+;vfork-events+;exec-events+;QNonStop+");
  if (target.process_control() != nullptr) offer("QDisableRandomization+");
  offer("qXfer:threads:read+");
  if (target.past_control() != nullptr) {
    offer("ReverseStep+;ReverseContinue+");
  }
  // A condition in the past may need a value that is not known. gdb, which then evaluates it, can
  // tell its user; in a live program's past it does so again.
  const bool is_over = target.past_control() != nullptr && !target.past_control()->lives_on();
  if (target.breakpoint_control() != nullptr && !is_over) {
    offer("ConditionalBreakpoints+;BreakpointCommands+");
  }
  if (target.branch_tracing() != nullptr) {
    offer(
        "Qbtrace:bts+;Qbtrace-conf:bts:size+;Qbtrace:pt+;Qbtrace-conf:pt:size+;Qbtrace:off+;"
        "qXfer:btrace:read+;qXfer:btrace-conf:read+");
  }
  if (target.breakpoint_control() != nullptr) offer("swbreak+;hwbreak+");
  offer("qXfer:exec-file:read+");
  if (runs) offer("vContSupported+;QThreadEvents+;no-resumed+");
  if (runs && client.thread_options) offer(fmt::format("QThreadOptions={:x}", kAllThreadOptions));
  offer("binary-upload+");
  return out;
}

Reply supported(SessionContext& context, std::string_view arguments) {
  context.client =
      parse_client_features(arguments.starts_with(':') ? arguments.substr(1) : std::string_view{});
  if (RunControl* run = context.target.run_control()) {
    run->set_reported_events(context.client.fork_events, context.client.vfork_events,
                             context.client.exec_events);
    for (const pid_t pid : context.target.processes()) {  // another client's
      for (const ThreadId thread : context.target.thread_ids(pid)) {
        run->set_thread_options(thread, {});
      }
    }
  }
  context.files.set_file_system(0);
  return Reply::text(offered_features(context.target, context.client));
}

Reply start_no_ack_mode(SessionContext& context, std::string_view /*arguments*/) {
  context.no_ack = true;
  return Reply::ok();
}

Reply extended_mode(SessionContext& context, std::string_view /*arguments*/) {
  context.state.extended = true;
  return Reply::ok();
}

// Packets in no table get the empty reply, "not supported": vMustReplyEmpty, qTStatus, qOffsets,
// qThreadExtraInfo, QAllow, QAgent and all others.
constexpr std::array kFeaturesPackets = {
    PacketEntry{"qSupported", PacketMatch::kPrefix, supported},
    PacketEntry{"QStartNoAckMode", PacketMatch::kWhole, start_no_ack_mode},
    PacketEntry{"!", PacketMatch::kWhole, extended_mode},
};

}  // namespace

std::span<const PacketEntry> feature_packets() {
  return kFeaturesPackets;
}

}  // namespace backtrail::server::handlers
