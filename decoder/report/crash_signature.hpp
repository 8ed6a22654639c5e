// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A line that is equal in two reports of the same fault.

#include <span>
#include <string>
#include <string_view>

namespace backtrail::decoder {

struct SignatureFrame {
  std::string function;
  std::string module;  ///< For example "libc.so.6"; empty if no file is mapped there.
};

/// Returns true for run-time libraries: libc, the loader, libstdc++, sanitizers. `module` is a file
/// name such as "libc.so.6", or a place in it.
[[nodiscard]] bool is_run_time_library(std::string_view module);

/// Returns a line such as "SIGSEGV read_item < read_all < main": how the program ended, and its
/// innermost functions. Functions of run-time libraries that report an error, or that were called
/// with a bad argument, are skipped. Addresses and lines are left out, because they change with
/// each build.
/// @param frames  Innermost first.
[[nodiscard]] std::string crash_signature(std::span<const SignatureFrame> frames,
                                          const std::string& end);

}  // namespace backtrail::decoder
