// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/seeds.hpp"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/persist/note_file.hpp"

namespace backtrail::tracee::cache {
namespace {

/// The file has three lines: the kind, the number of superblocks, the key.
std::string note_of(const std::string& kind, const Seed& who) {
  return fmt::format("{}\n{}\n{}\n", kind, who.shared, who.key);
}

std::optional<Seed> parsed(std::string_view note, const std::string& kind) {
  if (!note.starts_with(kind + '\n') || !note.ends_with('\n')) return std::nullopt;
  note.remove_prefix(kind.size() + 1);
  Seed who;
  const char* end = note.data() + note.size();
  const auto [behind, error] = std::from_chars(note.data(), end, who.shared);
  if (error != std::errc{} || behind == end || *behind != '\n') return std::nullopt;
  note.remove_prefix(static_cast<std::size_t>(behind - note.data()) + 1);
  if (note.size() < 2 || note.find('\n') != note.size() - 1) return std::nullopt;
  note.remove_suffix(1);
  who.key = note;
  return who;
}

}  // namespace

std::filesystem::path Seeds::file_of(const std::string& kind) const {
  return folder_ / kept_name(kind, "like");
}

std::optional<Seed> Seeds::find(const std::string& kind, bool in_folder) {
  if (const auto known = known_.find(kind); known != known_.end()) return known->second;
  if (!in_folder) return std::nullopt;
  const auto note = read_note(file_of(kind));
  auto who = note ? parsed(*note, kind) : std::nullopt;
  if (who) known_.emplace(kind, *who);
  return who;
}

void Seeds::set(const std::string& kind, const Seed& who, bool in_folder) {
  if (kind.find('\n') != std::string::npos || who.key.find('\n') != std::string::npos) return;
  known_[kind] = who;
  if (in_folder) write_note(file_of(kind), note_of(kind, who));
}

}  // namespace backtrail::tracee::cache
