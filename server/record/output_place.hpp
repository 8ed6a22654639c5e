// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides where crash files go. Crashes are rare, so obstacles to writing a file are reported
/// before the program runs.

#include <string>

namespace backtrail::server {

/// Makes the folder and any missing parents, as `mkdir -p` does.
/// @return Why that failed, in words for users; empty on success.
[[nodiscard]] std::string make_folders(const std::string& folder);

/// Completes a pattern of crash files' names: a folder stands for `FOLDER/%e.%p.core`. A pattern
/// that ends in a slash, or names an existing folder, is a folder.
[[nodiscard]] std::string file_pattern(const std::string& pattern);

struct OutputPlace {
  /// Folder of the files, as far as known before the program runs (it may contain `%p`); "." for
  /// the current one.
  std::string folder;
  /// Why no file could be written there, and what to do about it; empty if no obstacle is known.
  std::string problem;
};

/// Makes the folder of a file_pattern() and checks that a file of such a name can be written, with
/// a test file that is removed again. The folder may still change before a crash file is written.
/// @param program The program, by its path or name.
/// @param packed The files become archives, which have longer names.
[[nodiscard]] OutputPlace prepare_output(const std::string& pattern, const std::string& program,
                                         bool packed);

/// Removes a crash file, and its parent folders that vary per process and are empty.
void remove_crash_file(const std::string& pattern, const std::string& file);

}  // namespace backtrail::server
