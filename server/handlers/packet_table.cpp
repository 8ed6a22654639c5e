// SPDX-License-Identifier: Apache-2.0
#include "server/session/packet_table.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "server/handlers/handlers.hpp"

namespace backtrail::server {
namespace {

/// Packets by the first character of their names.
using PacketTable = std::array<std::vector<PacketEntry>, 256>;

std::size_t place_of(std::string_view name) {
  return static_cast<unsigned char>(name.front());
}

/// Returns all families, longest names first, so that the first match is the longest.
PacketTable make_table() {
  PacketTable table;
  for (const std::span<const PacketEntry> family :
       {handlers::feature_packets(), handlers::thread_packets(), handlers::register_packets(),
        handlers::memory_packets(), handlers::breakpoint_packets(), handlers::resume_packets(),
        handlers::process_packets(), handlers::launch_packets(), handlers::setting_packets(),
        handlers::symbol_packets(), handlers::monitor_packets(), handlers::btrace_packets(),
        handlers::qxfer_packets(), handlers::vfile_packets()}) {
    for (const PacketEntry& entry : family) table.at(place_of(entry.name)).push_back(entry);
  }
  for (auto& entries : table) {
    std::ranges::stable_sort(
        entries, [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
  }
  return table;
}

bool fits(const PacketEntry& entry, std::string_view payload) {
  return entry.match == PacketMatch::kWhole ? payload == entry.name
                                            : payload.starts_with(entry.name);
}

}  // namespace

const PacketEntry* find_packet(std::string_view payload) {
  static const PacketTable table = make_table();
  if (payload.empty()) return nullptr;
  const auto& entries = table.at(place_of(payload));
  const auto found =
      std::ranges::find_if(entries, [payload](const auto& entry) { return fits(entry, payload); });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace backtrail::server
