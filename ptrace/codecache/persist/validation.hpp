// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Notes which files were validated, so that they are not read whole again unless someone has
/// written to them or the machine has rebooted.

#include <sys/stat.h>

#include <filesystem>

namespace backtrail::tracee::cache {

/// Returns true if a note beside the file says that it was validated in exactly this state.
[[nodiscard]] bool is_validated(const std::filesystem::path& file, const struct stat& facts);
/// Writes such a note, unless the file changed so recently that a further change might not show.
void note_validated(const std::filesystem::path& file, const struct stat& facts);
/// Returns the path of the note.
[[nodiscard]] std::filesystem::path validation_note(const std::filesystem::path& file);

}  // namespace backtrail::tracee::cache
