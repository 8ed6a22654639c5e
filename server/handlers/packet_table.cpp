// SPDX-License-Identifier: Apache-2.0
#include "server/session/packet_table.hpp"

#include <algorithm>
#include <vector>

#include "server/handlers/handlers.hpp"

namespace backtrail::server {
namespace {

/// Returns all families in one list, longest names first, so that the first match is the longest.
std::vector<PacketEntry> make_table() {
  std::vector<PacketEntry> table;
  for (const std::span<const PacketEntry> family :
       {handlers::feature_packets(), handlers::thread_packets(), handlers::register_packets(),
        handlers::memory_packets(), handlers::breakpoint_packets(), handlers::resume_packets(),
        handlers::process_packets(), handlers::launch_packets(), handlers::setting_packets(),
        handlers::symbol_packets(), handlers::monitor_packets(), handlers::btrace_packets(),
        handlers::qxfer_packets(), handlers::vfile_packets()}) {
    table.insert(table.end(), family.begin(), family.end());
  }
  std::ranges::stable_sort(
      table, [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
  return table;
}

bool fits(const PacketEntry& entry, std::string_view payload) {
  return entry.match == PacketMatch::kWhole ? payload == entry.name
                                            : payload.starts_with(entry.name);
}

}  // namespace

const PacketEntry* find_packet(std::string_view payload) {
  static const std::vector<PacketEntry> table = make_table();
  const auto found =
      std::ranges::find_if(table, [payload](const auto& entry) { return fits(entry, payload); });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace backtrail::server
