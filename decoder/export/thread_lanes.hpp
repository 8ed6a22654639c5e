#pragma once
/// @file
/// The threads of a crash file as exports see them.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/export/exports.hpp"

namespace backtrail::decoder {

struct ThreadLane {
  std::uint32_t tid = 0;
  std::string title;  ///< "name 123", "name 123 (ended)".
  TraceeAddr pc;
  bool died = false;
  bool ended = false;  ///< Before the file was written.
};
/// Those with a trace, the one that died first, those that had ended last.
[[nodiscard]] std::vector<ThreadLane> thread_lanes(const ExportSource& source,
                                                   std::size_t most_ended = ~std::size_t{0});

/// "smash (123): SIGSEGV; ...", what a viewer shows as the process.
[[nodiscard]] std::string process_title(const ExportSource& source, std::string_view unit);

}  // namespace backtrail::decoder
