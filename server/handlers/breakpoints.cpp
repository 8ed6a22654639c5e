// SPDX-License-Identifier: Apache-2.0
// Z and z: breakpoints and watchpoints of the selected process.

#include <array>
#include <optional>
#include <system_error>

#include "ptrace/os/debug_register_check.hpp"
#include "server/handlers/breakpoint_program.hpp"
#include "server/handlers/handlers.hpp"

namespace backtrail::server::handlers {
namespace {

using tracee::BreakpointKind;
using tracee::BreakpointSpec;

/// x86 has no watchpoint on reads alone (type 3); gdb falls back to type 4.
std::optional<BreakpointKind> take_kind(PacketText& text) {
  if (text.take('0')) return BreakpointKind::kSoftware;
  if (text.take('1')) return BreakpointKind::kHardware;
  if (text.take('2')) return BreakpointKind::kWrite;
  if (text.take('4')) return BreakpointKind::kAccess;
  return std::nullopt;
}

bool is_code(BreakpointKind kind) {
  return kind == BreakpointKind::kSoftware || kind == BreakpointKind::kHardware;
}

/// Takes ",ADDR,KIND". The kind is the length of data; it must be 1 for code.
bool take_place(PacketText& text, BreakpointSpec& spec) {
  if (!text.take(',')) return false;
  const auto place = take_hex_pair(text);
  if (!place || place->second == 0) return false;
  if (is_code(spec.kind) && place->second != 1) return false;
  spec.address = TraceeAddr{place->first};
  spec.length = place->second;
  return true;
}

/// Parses "TYPE,ADDR,KIND", which both packets begin with. @param action  Called with control, pid,
/// spec and the rest of the packet.
template <typename Action>
Reply with_spec(SessionContext& context, std::string_view arguments, Action action) {
  BreakpointControl* control = context.target.breakpoint_control();
  PacketText text{arguments};
  const auto kind = take_kind(text);
  if (!kind || control == nullptr) return Reply::unknown();
  BreakpointSpec spec;
  spec.kind = *kind;
  const auto pid = context.selected_process();
  if (!take_place(text, spec) || !pid) return Reply::error();
  return action(*control, *pid, std::move(spec), text);
}

Reply insert(SessionContext& context, std::string_view arguments) {
  return with_spec(context, arguments,
                   [&](BreakpointControl& control, auto pid, BreakpointSpec spec, PacketText text) {
                     auto program = parse_breakpoint_program(text);
                     if (!program) return Reply::error();
                     spec.condition = make_condition(context.target, std::move(*program));
                     const auto done = control.insert(pid, std::move(spec));
                     if (!done && done.error().is(TraceErrc::kUnsupported)) return Reply::unknown();
                     if (!done && done.error().is(std::errc::no_such_device)) {
                       return Reply::error(context.error_form(), tracee::kNoDebugTraps);
                     }
                     if (!done && done.error().is(TraceErrc::kBusy)) {
                       return Reply::error(
                           context.error_form(),
                           "no debug register of the CPU is free: delete a hardware "
                           "breakpoint or a watchpoint");
                     }
                     return Reply::from(done);
                   });
}

Reply remove(SessionContext& context, std::string_view arguments) {
  return with_spec(context, arguments,
                   [](BreakpointControl& control, auto pid, const BreakpointSpec& spec,
                      const PacketText&) { return Reply::from(control.remove(pid, spec)); });
}

constexpr std::array kBreakpointsPackets = {
    PacketEntry{"Z", PacketMatch::kPrefix, insert},
    PacketEntry{"z", PacketMatch::kPrefix, remove},
};

}  // namespace

std::span<const PacketEntry> breakpoint_packets() {
  return kBreakpointsPackets;
}

}  // namespace backtrail::server::handlers
