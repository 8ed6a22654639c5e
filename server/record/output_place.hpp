#pragma once
/// @file
/// Where crash files go. Crashes are rare, so what would keep a file from being written is found
/// out before the program runs.

#include <string>

namespace backtrail::server {

/// Makes the folder and each folder above it that is missing, as `mkdir -p` does.
/// @return Why that cannot be, in words for people; empty: the folder is there.
[[nodiscard]] std::string make_folders(const std::string& folder);

/// Completes a pattern of crash files' names: a folder stands for `FOLDER/%e.%p.core`. A folder is
/// what ends in a slash, or is one already.
[[nodiscard]] std::string file_pattern(const std::string& pattern);

struct OutputPlace {
  /// The folder of the files, as far as its name is known before the program runs (`%p` may occur
  /// in it); "." for the current one.
  std::string folder;
  /// Why no file could be written there, and what to do about it; empty: nothing is known against
  /// it.
  std::string problem;
};

/// Makes the folder of a file_pattern() and tries whether a file of such a name can be written.
/// What it writes for that is gone when it returns. The place may change before a file is written.
/// @param program  The program, by its path or name.
/// @param packed   Whether the files become archives, which have longer names.
[[nodiscard]] OutputPlace prepare_output(const std::string& pattern, const std::string& program,
                                         bool packed);

/// Removes a crash file, and those of its folders that vary from process to process and are empty.
void remove_crash_file(const std::string& pattern, const std::string& file);

}  // namespace backtrail::server
