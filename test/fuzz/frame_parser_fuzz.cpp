// SPDX-License-Identifier: Apache-2.0
// Parses a client's bytes in pieces of random size. Memory must be bounded, and a parsed packet
// must survive writing and reading.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "arch/base/check.hpp"
#include "server/rsp/binary_escape.hpp"
#include "server/rsp/frame_parser.hpp"
#include "server/rsp/frame_writer.hpp"

namespace {

constexpr std::size_t kMaxPayload = 512;

void check_round_trip(const std::string& payload) {
  const auto bytes = backtrail::server::rsp::unescape_binary(payload);
  if (!bytes) return;
  const std::string wire =
      backtrail::server::rsp::frame_packet(backtrail::server::rsp::escape_binary(*bytes));
  backtrail::server::rsp::FrameParser parser{4 * kMaxPayload};
  std::string_view rest = wire;
  const auto frame = parser.next(rest);
  BT_CHECK(frame && frame->kind == backtrail::server::rsp::FrameKind::kPacket);
  BT_CHECK(backtrail::server::rsp::unescape_binary(frame->payload) == bytes);
  BT_CHECK(rest.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::size_t piece = 1 + data[0] % 64U;
  std::string_view input{reinterpret_cast<const char*>(data) + 1, size - 1};
  backtrail::server::rsp::FrameParser parser{kMaxPayload};
  while (!input.empty()) {
    std::string_view part = input.substr(0, piece);
    input.remove_prefix(part.size());
    while (const auto frame = parser.next(part)) {
      BT_CHECK(frame->payload.size() <= kMaxPayload);
      if (frame->kind == backtrail::server::rsp::FrameKind::kPacket) {
        check_round_trip(frame->payload);
      }
    }
    BT_CHECK(part.empty());
  }
  return 0;
}
