#pragma once
/// @file
/// Files that are made whole by rename(2), which asks nobody what it replaces.

#include <string>

namespace backtrail::tracee {

/// Whether `path` names something that must not be replaced by a file: a device such as /dev/null,
/// which every other program needs, a pipe, a socket, a folder; or a link to one.
[[nodiscard]] bool is_no_plain_file(const std::string& path);

}  // namespace backtrail::tracee
