// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the functions by which sanitizers' run-time libraries begin to report an error.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// A function that is called once for each reported error, before the report is printed, and not
/// for duplicates that are suppressed.
struct ReportPoint {
  TraceeAddr address;
  bool may_end =
      true;  ///< The process may end before the report is complete; false for ThreadSanitizer.
};

/// Returns the report points in one file of a process. Found by the symbol table; if only dynamic
/// symbols are left, functions that are called slightly earlier or later are used instead. x86-64
/// only.
/// @param file Path to read, which may differ from `path`.
/// @param path The file's name in `maps`.
[[nodiscard]] std::vector<ReportPoint> find_report_points(const std::string& file,
                                                          const std::string& path,
                                                          std::span<const tracee::MapEntry> maps);

/// Suffix of the name of the function that find_panic_points() looks for.
inline constexpr std::string_view kPanicFunction = "rust_begin_unwind";

/// Returns the addresses of the function that a Rust program calls once for each panic, before it
/// prints the message and a backtrace. Otherwise as find_report_points(). Empty for other programs.
[[nodiscard]] std::vector<TraceeAddr> find_panic_points(const std::string& file,
                                                        const std::string& path,
                                                        std::span<const tracee::MapEntry> maps);
/// Returns true if a function of this name, in the linker's form, is a report point.
[[nodiscard]] bool is_report_point(std::string_view name);

}  // namespace backtrail::server
