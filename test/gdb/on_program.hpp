// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Short names for gdb sessions on the programs of test/inferiors.

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/gdb_session.hpp"

namespace backtrail::test {

/// Matches gdb's message at an end of the history: gdb up to 15, and later ones.
inline auto at_an_end() {
  return ::testing::AnyOf(::testing::HasSubstr("No more reverse-execution history"),
                          ::testing::HasSubstr("Reached end of recorded history; stopping."));
}

/// A session on an inferior, stopped at its first instruction.
inline GdbOptions on(std::string_view name, const std::vector<std::string>& arguments = {}) {
  GdbOptions options;
  options.program = {inferior(name)};
  options.program.insert(options.program.end(), arguments.begin(), arguments.end());
  return options;
}

/// A way to record: gdb's format and the server's source.
struct Recording {
  const char* name;
  const char* format;
  const char* source;

  [[nodiscard]] std::string command() const { return std::string{"record btrace "} + format; }
};

inline void PrintTo(const Recording& recording, std::ostream* out) {
  *out << recording.name;
}

/// Both formats with each source that every machine has.
inline auto recordings() {
  return ::testing::Values(
      Recording{"BtsByStep", "bts", "step"}, Recording{"PtByStep", "pt", "step"},
      Recording{"BtsByCache", "bts", "cache"}, Recording{"PtByCache", "pt", "cache"});
}

/// The session with one source.
inline GdbOptions by(std::string_view source, GdbOptions options) {
  options.server_options.insert(options.server_options.end(), {"--source", std::string{source}});
  return options;
}

/// The session over another wire.
inline GdbOptions over(Wire wire, GdbOptions options) {
  options.wire = wire;
  return options;
}

/// The session by `target extended-remote` to a server that stays.
inline GdbOptions extended(GdbOptions options) {
  options.extended = true;
  options.server_options.emplace_back("--multi");
  return options;
}

/// Returns how often `part` occurs in `text`.
inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++found;
  }
  return found;
}

}  // namespace backtrail::test
