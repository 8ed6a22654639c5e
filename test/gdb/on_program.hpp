#pragma once
/// @file
/// Short words for sessions of gdb on the programs of test/inferiors.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/support/gdb_session.hpp"

namespace backtrail::test {

/// gdb on one of our programs, stopped at its first instruction.
inline GdbOptions on(std::string_view name, const std::vector<std::string>& arguments = {}) {
  GdbOptions options;
  options.program = {inferior(name)};
  options.program.insert(options.program.end(), arguments.begin(), arguments.end());
  return options;
}

/// Likewise, over another wire.
inline GdbOptions over(Wire wire, GdbOptions options) {
  options.wire = wire;
  return options;
}

/// `target extended-remote` to a server that stays.
inline GdbOptions extended(GdbOptions options) {
  options.extended = true;
  options.server_options.emplace_back("--multi");
  return options;
}

/// How often `part` stands in `text`.
inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

}  // namespace backtrail::test
