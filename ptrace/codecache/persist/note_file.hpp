// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Small private text files in the persistent cache's folder: whole or absent.

#include <filesystem>
#include <optional>
#include <string>

namespace backtrail::tracee::cache {

/// Returns the text; nullopt if there is none or it is longer than kMostNoteBytes.
[[nodiscard]] std::optional<std::string> read_note(const std::filesystem::path& file);
/// Replaces the note. If that fails, nothing changes.
void write_note(const std::filesystem::path& file, const std::string& text);

/// Maximum length of a note in bytes.
inline constexpr std::size_t kMostNoteBytes = 16384;

}  // namespace backtrail::tracee::cache
