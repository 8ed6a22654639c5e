// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lines by which test reports (JUnit's system-out) attach files.

#include <string>

namespace backtrail::server {

/// Returns the line "[[ATTACHMENT|PATH]]" for a file, with its newline: PATH is relative to
/// `project`, as GitLab wants it, if the file is below that folder, and absolute otherwise, as
/// Jenkins wants it. Returns an empty text for a path that such a line cannot hold.
/// @param project  Absolute path of a folder; empty if there is none.
[[nodiscard]] std::string attachment_line(const std::string& path, const std::string& project);

}  // namespace backtrail::server
