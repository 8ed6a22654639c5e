#pragma once
/// @file
/// Small private files of text beside what is kept: whole or absent.

#include <filesystem>
#include <optional>
#include <string>

namespace backtrail::tracee::cache {

/// Nothing where there is none, or a longer one than kMostNoteBytes.
[[nodiscard]] std::optional<std::string> read_note(const std::filesystem::path& file);
/// In the place of what is there. Where that cannot be, nothing changes.
void write_note(const std::filesystem::path& file, const std::string& text);

/// Longer notes are not read.
inline constexpr std::size_t kMostNoteBytes = 16384;

}  // namespace backtrail::tracee::cache
