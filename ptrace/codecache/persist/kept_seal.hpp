#pragma once
/// @file
/// Files that were found good: what nobody has written to since, on a machine that has been running
/// since, is not read whole again.

#include <sys/stat.h>

#include <filesystem>

namespace backtrail::tracee::cache {

/// Beside the file is a note of what it was when it was checked, which fits no other state of it.
[[nodiscard]] bool is_sealed(const std::filesystem::path& file, const struct stat& facts);
/// Leaves such a note; not for a file that has changed so lately that a further change might not
/// show.
void seal(const std::filesystem::path& file, const struct stat& facts);
/// The note's place.
[[nodiscard]] std::filesystem::path seal_of(const std::filesystem::path& file);

}  // namespace backtrail::tracee::cache
