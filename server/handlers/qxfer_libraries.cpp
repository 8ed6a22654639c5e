// SPDX-License-Identifier: Apache-2.0
// libraries-svr4: the dynamic linker's list of loaded objects.

#include <algorithm>

#include <fmt/format.h>

#include "server/handlers/qxfer_objects.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server::handlers {
namespace {

/// "start=H;prev=H;lmid=H", each part optional. gdb already knows the entries up to `prev` and asks
/// for those of one namespace from `start` on.
struct LibrariesAnnex {
  std::optional<TraceeAddr> start;
  std::optional<TraceeAddr> previous;
  std::optional<TraceeAddr> namespace_id;
};

std::optional<LibrariesAnnex> parse_annex(std::string_view annex) {
  LibrariesAnnex parsed;
  PacketText text{annex};
  while (!text.at_end()) {
    PacketText item{text.take_field(';')};
    const std::string_view name = item.take_field('=');
    const auto value = item.take_hex();
    if (!value || !item.at_end()) return std::nullopt;
    if (name == "start") parsed.start = TraceeAddr{*value};
    if (name == "prev") parsed.previous = TraceeAddr{*value};
    if (name == "lmid") parsed.namespace_id = TraceeAddr{*value};
  }
  return parsed;
}

/// Drops entries that gdb knows. Returns false if no list has `start`; gdb then reads everything.
bool keep_from_start(const LibrariesAnnex& annex, LinkMapList& list) {
  if (annex.namespace_id && annex.namespace_id->value() != 0) {
    std::erase_if(list.entries, [&annex](const LinkMapEntry& entry) {
      return entry.namespace_id != *annex.namespace_id;
    });
  }
  if (!annex.start || annex.start->value() == 0) return true;
  const auto start = std::ranges::find(list.entries, *annex.start, &LinkMapEntry::link_map);
  if (start == list.entries.end()) return false;
  list.entries.erase(list.entries.begin(), start);
  return true;
}

}  // namespace

Document libraries_document(SessionContext& context, std::string_view annex) {
  const auto pid = context.selected_process();
  const auto parsed = parse_annex(annex);
  if (!pid || !parsed) return no_document();
  auto list = context.target.link_maps(*pid);
  if (!list || !keep_from_start(*parsed, *list)) return no_document();

  std::string out = "<library-list-svr4 version=\"1.0\"";
  // A list that starts in the middle does not include the program itself.
  const bool from_middle = parsed->previous && parsed->previous->value() != 0;
  if (list->main && !from_middle) out += fmt::format(" main-lm=\"{}\"", *list->main);
  out += '>';
  for (const LinkMapEntry& entry : list->entries) {
    if (entry.name.empty()) continue;
    out += fmt::format("<library name=\"{}\" lm=\"{}\" l_addr=\"{}\" l_ld=\"{}\" lmid=\"{}\"/>",
                       xml_escaped(entry.name), entry.link_map, entry.load_bias, entry.dynamic,
                       entry.namespace_id);
  }
  out += "</library-list-svr4>";
  return out;
}

}  // namespace backtrail::server::handlers
