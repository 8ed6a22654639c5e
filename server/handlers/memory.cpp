// SPDX-License-Identifier: Apache-2.0
// m, M, X, x, qSearch:memory, qCRC: memory of the selected process.

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "server/handlers/handlers.hpp"
#include "server/rsp/binary_escape.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kChunkBytes = 64UL * 1024;

/// Reads [address, address + size); nullopt if any byte is unreadable.
std::optional<Bytes> read_exactly(SessionContext& context, std::uint64_t address,
                                  std::size_t size_bytes) {
  const auto pid = context.selected_process();
  if (!pid) return std::nullopt;
  Bytes data(size_bytes);
  if (PastControl* past = context.target.past_control()) {
    const auto thread = context.selected_thread();
    if (thread && past->in_past(*thread)) {
      if (past->read_memory(*thread, TraceeAddr{address}, data) != size_bytes) return std::nullopt;
      return data;
    }
  }
  const auto got = context.target.read_memory(*pid, TraceeAddr{address}, data);
  if (!got || *got != size_bytes) return std::nullopt;
  return data;
}

/// Parses "ADDR,LEN"; nullopt if anything follows.
std::optional<HexPair> parse_range(std::string_view arguments) {
  PacketText text{arguments};
  const auto range = take_hex_pair(text);
  if (!text.at_end()) return std::nullopt;
  return range;
}

/// Limits a length to what a reply holds. Less than the client asked for is a legal answer.
std::size_t bounded(std::uint64_t length, std::size_t most) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(length, most));
}

Reply read_hex(SessionContext& context, std::string_view arguments) {
  const auto range = parse_range(arguments);
  if (!range) return Reply::error();
  const auto data =
      read_exactly(context, range->first, bounded(range->second, Session::kPacketSize / 2 - 1));
  return data ? Reply::text(rsp::to_hex(*data)) : Reply::error();
}

/// Handles x: the answer is "b" and the bytes themselves.
Reply read_binary(SessionContext& context, std::string_view arguments) {
  const auto range = parse_range(arguments);
  if (!range) return Reply::error();
  const auto data =
      read_exactly(context, range->first, bounded(range->second, Session::kPacketSize - 2));
  if (!data) return Reply::error();
  std::string out = "b";
  rsp::append_escaped(*data, Session::kPacketSize - 2, out);
  return Reply::text(std::move(out));
}

Reply write(SessionContext& context, std::string_view arguments,
            std::optional<Bytes> (*decode)(std::string_view)) {
  PacketText text{arguments};
  const auto range = take_hex_pair(text);
  const auto pid = context.selected_process();
  if (!range || !text.take(':') || !pid) return Reply::error();
  const auto data = decode(text.rest());
  if (!data || data->size() != range->second) return Reply::error();
  if (data->empty()) return Reply::ok();
  return Reply::from_write(context.target.write_memory(*pid, TraceeAddr{range->first}, *data),
                           context.error_form(), context.target.past_control());
}

Reply write_hex(SessionContext& context, std::string_view arguments) {
  return write(context, arguments, rsp::from_hex);
}

Reply write_binary(SessionContext& context, std::string_view arguments) {
  return write(context, arguments, rsp::unescape_binary);
}

/// Handles qSearch:memory:ADDR;LEN;PATTERN. Consecutive chunks overlap by the pattern's length, so
/// that a match across two chunks is found.
Reply search(SessionContext& context, std::string_view arguments) {
  PacketText text{arguments};
  const auto start = text.take_hex();
  if (!start || !text.take(';')) return Reply::error();
  const auto length = text.take_hex();
  if (!length || !text.take(';')) return Reply::error();
  const auto pattern = rsp::unescape_binary(text.rest());
  if (!pattern || pattern->empty()) return Reply::error();
  if (*length < pattern->size()) return Reply::text("0");

  const std::boyer_moore_searcher searcher{pattern->begin(), pattern->end()};
  std::uint64_t address = *start;
  std::uint64_t places = *length - pattern->size() + 1;
  while (places > 0) {
    const std::uint64_t now = std::min<std::uint64_t>(places, kChunkBytes);
    const auto data = read_exactly(context, address, now + pattern->size() - 1);
    if (!data) return Reply::error(std::uint8_t{0});
    const auto hit = std::search(data->begin(), data->end(), searcher);
    if (hit != data->end()) {
      const auto offset = static_cast<std::uint64_t>(hit - data->begin());
      return Reply::text(fmt::format("1,{:x}", address + offset));
    }
    address += now;
    places -= now;
  }
  return Reply::text("0");
}

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i << 24;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1) ^ ((crc >> 31) != 0 ? 0x04c11db7U : 0U);
    table[i] = crc;
  }
  return table;
}

/// CRC-32 with polynomial 04c11db7, most significant bit first, no final inversion.
std::uint32_t continue_crc(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  static constexpr auto kTable = make_crc_table();
  for (const std::uint8_t byte : bytes) crc = (crc << 8) ^ kTable[(crc >> 24) ^ byte];
  return crc;
}

Reply checksum(SessionContext& context, std::string_view arguments) {
  const auto range = parse_range(arguments);
  if (!range || !context.has_process()) return Reply::error();
  std::uint32_t crc = std::numeric_limits<std::uint32_t>::max();
  std::uint64_t address = range->first;
  for (std::uint64_t left = range->second; left > 0;) {
    const std::uint64_t now = std::min<std::uint64_t>(left, kChunkBytes);
    const auto data = read_exactly(context, address, now);
    if (!data) return Reply::error();
    crc = continue_crc(crc, *data);
    address += now;
    left -= now;
  }
  return Reply::text(fmt::format("C{:x}", crc));
}

constexpr std::array kMemoryPackets = {
    PacketEntry{"m", PacketMatch::kPrefix, read_hex},
    PacketEntry{"x", PacketMatch::kPrefix, read_binary},
    PacketEntry{"M", PacketMatch::kPrefix, write_hex},
    PacketEntry{"X", PacketMatch::kPrefix, write_binary},
    PacketEntry{"qSearch:memory:", PacketMatch::kPrefix, search},
    PacketEntry{"qCRC:", PacketMatch::kPrefix, checksum},
};

}  // namespace

std::span<const PacketEntry> memory_packets() {
  return kMemoryPackets;
}

}  // namespace backtrail::server::handlers
