// SPDX-License-Identifier: Apache-2.0
// qSymbol asks gdb for symbols that only gdb knows, one by one; qGetTLSAddr needs them.
// qShlibInfoAddr.
//
// gdb says "qSymbol::" when it has read new symbol files. The reply "qSymbol:NAME" is a question;
// gdb answers it with "qSymbol:ADDRESS:NAME" (no address: unknown) and waits for the next question
// or for OK. Between two of these gdb may send other packets.

#include <array>
#include <utility>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

// Limits the questions: a target that always wants more names must not keep gdb busy for ever.
constexpr std::size_t kMaxNames = 1000;

Reply ask_next(SessionContext& context);

/// Starts a round with the names not asked before; replies OK if there are none.
Reply start_round(SessionContext& context) {
  SymbolQuery& query = *context.symbols;
  query.names.clear();
  query.found.clear();
  query.next = 0;
  for (std::string& name : context.target.wanted_symbols(query.pid)) {
    if (query.asked.size() >= kMaxNames) break;
    if (query.asked.insert(name).second) query.names.push_back(std::move(name));
  }
  if (query.names.empty()) {
    context.symbols.reset();
    return Reply::ok();
  }
  return ask_next(context);
}

Reply ask_next(SessionContext& context) {
  SymbolQuery& query = *context.symbols;
  // If gdb does not know the first symbol, the library that defines it is not loaded, and gdb knows
  // none of the others.
  const bool pointless = query.next == 1 && query.found.empty();
  if (query.next < query.names.size() && !pointless) {
    return Reply::text("qSymbol:" + rsp::to_hex(std::string_view{query.names[query.next]}));
  }
  context.target.symbols_resolved(query.pid, query.found);
  return start_round(context);
}

Reply symbols_available(SessionContext& context) {
  context.symbols.reset();
  const auto pid = context.selected_process();
  if (!pid) return Reply::ok();
  context.symbols = SymbolQuery{.pid = *pid, .names = {}, .next = 0, .asked = {}, .found = {}};
  return start_round(context);
}

/// Handles ADDRESS:NAME or :NAME.
Reply symbol_answer(SessionContext& context, PacketText text) {
  if (!context.symbols) return Reply::error();
  SymbolQuery& query = *context.symbols;
  const auto address = text.take_hex();
  const bool separated = text.take(':');
  const auto name = rsp::text_from_hex(text.rest());
  const bool expected =
      separated && name && query.next < query.names.size() && *name == query.names[query.next];
  if (!expected) {
    context.symbols.reset();
    return Reply::error();
  }
  if (address) query.found.emplace(*name, TraceeAddr{*address});
  ++query.next;
  return ask_next(context);
}

Reply symbol(SessionContext& context, std::string_view arguments) {
  if (arguments == ":") return symbols_available(context);
  return symbol_answer(context, PacketText{arguments});
}

/// Handles qGetTLSAddr:THREAD,OFFSET,LINK_MAP.
Reply tls_address(SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  const auto pattern = take_thread_pattern(text);
  if (!pattern || !text.take(',')) return Reply::error();
  const auto offset_and_map = take_hex_pair(text);
  if (!offset_and_map || !text.at_end() || pattern->tid <= 0) return Reply::error();
  const auto process = context.selected_process();
  if (!process) return Reply::error();
  const ThreadId thread{pattern->pid > 0 ? pattern->pid : *process, pattern->tid};
  if (!context.target.alive(thread)) return Reply::error();
  const auto address =
      context.target.tls_address(thread, offset_and_map->first, TraceeAddr{offset_and_map->second});
  if (!address) return Reply::error();
  return Reply::text(fmt::format("{:x}", address->value()));
}

/// Replies with the address at which the dynamic linker stores a pointer to its struct r_debug.
/// lldb uses it instead of a list of libraries. Source: lldb/docs/lldb-gdb-remote.txt,
/// "qShlibInfoAddr".
Reply dynamic_linker(SessionContext& context, std::string_view) {
  const auto process = context.selected_process();
  if (!process) return Reply::error();
  const auto list = context.target.link_maps(*process);
  if (!list || list->debug_pointer == TraceeAddr{}) return Reply::error();
  return Reply::text(fmt::format("{:x}", list->debug_pointer.value()));
}

constexpr std::array kSymbolsPackets = {
    PacketEntry{"qShlibInfoAddr", PacketMatch::kWhole, dynamic_linker},
    PacketEntry{"qSymbol:", PacketMatch::kPrefix, symbol},
    PacketEntry{"qGetTLSAddr:", PacketMatch::kPrefix, tls_address},
};

}  // namespace

std::span<const PacketEntry> symbol_packets() {
  return kSymbolsPackets;
}

}  // namespace backtrail::server::handlers
