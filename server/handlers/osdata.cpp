// SPDX-License-Identifier: Apache-2.0
// The osdata object: tables of the machine's state, for `info os`.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ptrace/tracee/osdata.hpp"
#include "server/handlers/qxfer_objects.hpp"

namespace backtrail::server::handlers {
namespace {

/// A table whose title in gdbserver's document differs from its annex.
struct OsDataTitle {
  std::string_view type;
  std::string_view title;
};

constexpr std::array kTitles = {
    OsDataTitle{"", "types"},
    OsDataTitle{"procgroups", "process groups"},
    OsDataTitle{"sockets", "I sockets"},
    OsDataTitle{"shm", "shared memory"},
    OsDataTitle{"msg", "message queues"},
};

std::string_view title_of(std::string_view type) {
  const auto* row = std::ranges::find(kTitles, type, &OsDataTitle::type);
  return row == kTitles.end() ? type : row->title;
}

}  // namespace

/// Returns an empty document for an unknown table.
Document osdata_document(SessionContext& /*context*/, std::string_view annex) {
  const auto rows = tracee::read_osdata(annex);
  if (!rows) return std::string{};
  std::string out = fmt::format("<osdata type=\"{}\">\n", title_of(annex));
  for (const tracee::OsDataRow& row : *rows) {
    out += "<item>";
    for (const auto& [name, value] : row) {
      out += fmt::format("<column name=\"{}\">{}</column>", xml_escaped(name), xml_escaped(value));
    }
    out += "</item>\n";
  }
  out += "</osdata>\n";
  return out;
}

}  // namespace backtrail::server::handlers
