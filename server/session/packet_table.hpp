// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the handler of a packet.

#include <cstdint>
#include <span>
#include <string_view>

#include "server/session/session_context.hpp"

namespace backtrail::server {

enum class PacketMatch : std::uint8_t {
  kWhole,   ///< The packet is exactly the name.
  kPrefix,  ///< The packet starts with the name; the handler gets the rest.
};

struct PacketEntry {
  std::string_view name;
  PacketMatch match;
  /// @param arguments The packet's text after the name.
  Reply (*handle)(SessionContext& context, std::string_view arguments);
};

/// Returns the entry with the longest matching name, or null if no name matches.
[[nodiscard]] const PacketEntry* find_packet(std::string_view payload);

}  // namespace backtrail::server
