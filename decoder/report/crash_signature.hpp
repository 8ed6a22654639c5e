#pragma once
/// @file
/// A line that two reports have in common if they tell of the same fault.

#include <span>
#include <string>
#include <string_view>

namespace backtrail::decoder {

struct SignatureFrame {
  std::string function;
  std::string module;  ///< "libc.so.6"; empty: no file.
};

/// libc, the loader, libstdc++ and such, which are no program's own. `module` is "libc.so.6", or a
/// place in it.
[[nodiscard]] bool is_run_time_library(std::string_view module);

/// "SIGSEGV read_item < read_all < main": how it ended, and the innermost few functions, without
/// those of run-time libraries that report an error or were called with a bad argument. Neither
/// addresses nor lines are in it: these change with each build.
/// @param frames  Innermost first.
[[nodiscard]] std::string crash_signature(std::span<const SignatureFrame> frames,
                                          const std::string& end);

}  // namespace backtrail::decoder
