#pragma once
/// @file
/// Where sanitizers' run-time libraries begin to tell of an error.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// A function that is called once for each error that is told, before anything is printed, and not
/// for errors that are left out because they were told before.
struct ReportPoint {
  TraceeAddr address;
  bool may_end =
      true;  ///< The process may end before the report is over. ThreadSanitizer's do not.
};

/// Those of one file of a process.
/// @param file  The path to read, which may be another than `path`.
/// @param path  The file's name in `maps`.
/// Symbol tables name them; where only dynamic symbols are left, functions that are called a little
/// earlier or later are taken. Of x86-64 files only.
[[nodiscard]] std::vector<ReportPoint> find_report_points(const std::string& file,
                                                          const std::string& path,
                                                          std::span<const tracee::MapEntry> maps);

/// How the name ends of the function that find_panic_points() looks for.
inline constexpr std::string_view kPanicFunction = "rust_begin_unwind";

/// Where a program in Rust panics: a function that is called once for each panic, before its
/// message and a backtrace are printed. As find_report_points() otherwise; none for other programs.
[[nodiscard]] std::vector<TraceeAddr> find_panic_points(const std::string& file,
                                                        const std::string& path,
                                                        std::span<const tracee::MapEntry> maps);
/// The name, as linkers have it, is that of such a function.
[[nodiscard]] bool is_report_point(std::string_view name);

}  // namespace backtrail::server
