// SPDX-License-Identifier: Apache-2.0
// g, G, p, P: registers of the selected thread.

#include <array>
#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

using arch::cpu::GdbRegisterSet;
using arch::cpu::RawRegisters;

/// Registers of the selected thread, and gdb's view of them.
struct Registers {
  ThreadId thread;
  const GdbRegisterSet* set;
  RawRegisters raw;
};

Result<Registers> selected_registers(SessionContext& context) {
  const auto thread = context.selected_thread();
  if (!thread) return fail(TraceErrc::kNotFound, "registers");
  BT_TRY(const GdbRegisterSet* set, context.target.register_set(thread->pid));
  BT_TRY(RawRegisters raw, context.target.read_registers(*thread));
  return Registers{*thread, set, std::move(raw)};
}

/// Uses the text form of errors: every gdb shows the error of these packets unchanged.
Reply write(SessionContext& context, const Registers& registers) {
  return Reply::from_write(context.target.write_registers(registers.thread, registers.raw),
                           rsp::ErrorForm::kText, context.target.past_control());
}

/// Returns the size of the `g` packet.
std::size_t block_bytes(const SessionContext& context, const GdbRegisterSet& set) {
  return context.client.x86_registers ? set.block_bytes() : set.assumed_block_bytes();
}

/// Returns the text that stands for an unknown register in `g` and `p` replies.
std::string unavailable(std::size_t bytes) {
  return std::string(2 * bytes, 'x');
}

Reply read_all(SessionContext& context, std::string_view /*arguments*/) {
  const auto registers = selected_registers(context);
  if (!registers) return Reply::error();
  const std::vector<std::uint8_t> block = registers->set->to_gdb(registers->raw);
  const KnownRegisters known = context.target.known_registers(registers->thread);
  std::string text = rsp::to_hex(block);
  const auto all = registers->set->registers();
  for (std::size_t number = 0; number < all.size(); ++number) {
    if (known.has(number)) continue;
    text.replace(2 * all[number].offset, 2 * all[number].bytes(), unavailable(all[number].bytes()));
  }
  text.resize(2 * block_bytes(context, *registers->set));
  return Reply::text(std::move(text));
}

Reply write_all(SessionContext& context, std::string_view arguments) {
  const auto block = rsp::from_hex(arguments);
  auto registers = selected_registers(context);
  if (!block || !registers) return Reply::error();
  const std::size_t wanted = block_bytes(context, *registers->set);
  if (block->size() != wanted) {
    fmt::print(stderr, "Wrong sized register packet (expected {} bytes, got {})\n", wanted,
               block->size());
  }
  const std::size_t used = std::min(wanted, block->size());
  registers->set->from_gdb(std::span{*block}.first(used), registers->raw);
  return write(context, *registers);
}

Reply read_one(SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  const auto number = text.take_hex();
  if (!number || !text.at_end()) return Reply::error();
  const auto registers = selected_registers(context);
  if (!registers) return Reply::error();
  const auto value = registers->set->read_one(*number, registers->raw);
  if (!value) return Reply::error();
  const bool known = context.target.known_registers(registers->thread).has(*number);
  return Reply::text(known ? rsp::to_hex(*value) : unavailable(value->size()));
}

Reply write_one(SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  const auto number = text.take_hex();
  if (!number || !text.take('=')) return Reply::error();
  const auto value = rsp::from_hex(text.rest());
  auto registers = selected_registers(context);
  if (!value || !registers) return Reply::error();
  if (!registers->set->write_one(*number, *value, registers->raw)) return Reply::error();
  return write(context, *registers);
}

constexpr std::array kRegistersPackets = {
    PacketEntry{"g", PacketMatch::kWhole, read_all},
    PacketEntry{"G", PacketMatch::kPrefix, write_all},
    PacketEntry{"p", PacketMatch::kPrefix, read_one},
    PacketEntry{"P", PacketMatch::kPrefix, write_one},
};

}  // namespace

std::span<const PacketEntry> register_packets() {
  return kRegistersPackets;
}

}  // namespace backtrail::server::handlers
