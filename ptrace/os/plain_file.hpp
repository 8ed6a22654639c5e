// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A check before rename(2), which replaces any file without asking.

#include <string>

namespace backtrail::tracee {

/// Returns true if `path` names something that must not be replaced by a file: a device such as
/// /dev/null, a pipe, a socket, a folder, or a link to one.
[[nodiscard]] bool is_no_plain_file(const std::string& path);

}  // namespace backtrail::tracee
