#pragma once
/// @file
/// How packets find their handlers.

#include <cstdint>
#include <span>
#include <string_view>

#include "server/session/session_context.hpp"

namespace backtrail::server {

enum class PacketMatch : std::uint8_t {
  kWhole,   ///< The packet is the name and nothing else.
  kPrefix,  ///< The name begins the packet; the handler gets the rest.
};

struct PacketEntry {
  std::string_view name;
  PacketMatch match;
  /// @param arguments What follows the name.
  Reply (*handle)(SessionContext& context, std::string_view arguments);
};

/// The entry with the longest name that fits, or null: the packet is unknown.
[[nodiscard]] const PacketEntry* find_packet(std::string_view payload);

}  // namespace backtrail::server
