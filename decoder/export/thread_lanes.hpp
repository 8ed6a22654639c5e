// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The threads of a crash file as exports show them.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/export/exports.hpp"

namespace backtrail::decoder {

struct ThreadLane {
  std::uint32_t tid = 0;
  std::string title;  ///< "name 123" or "name 123 (ended)".
  TraceeAddr pc;
  bool died = false;
  bool ended = false;  ///< Ended before the file was written.
};
/// Returns the threads with a trace: the one that died first, ended threads last.
[[nodiscard]] std::vector<ThreadLane> thread_lanes(const ExportSource& source,
                                                   std::size_t most_ended = ~std::size_t{0});

/// Returns the process title for viewers: "smash (123): SIGSEGV; ...".
[[nodiscard]] std::string process_title(const ExportSource& source, std::string_view unit);

}  // namespace backtrail::decoder
