// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/validation.hpp"

#include <string>

#include <fmt/format.h>

#include "ptrace/codecache/persist/note_file.hpp"
#include "ptrace/os/file_facts.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;

/// Returns the note's text. Every write updates the change time, which no program can set.
std::string note_of(const struct stat& facts) {
  if (boot_id().empty()) return {};
  return fmt::format("{} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size,
                     nanoseconds_of(facts.st_ctim), boot_id());
}

}  // namespace

fs::path validation_note(const fs::path& file) {
  fs::path note = file;
  return note.replace_extension("checked");
}

bool is_validated(const fs::path& file, const struct stat& facts) {
  const std::string expected = note_of(facts);
  return !expected.empty() && read_note(validation_note(file)) == expected;
}

void note_validated(const fs::path& file, const struct stat& facts) {
  const std::string note = note_of(facts);
  if (is_settled(facts) && !note.empty()) write_note(validation_note(file), note);
}

}  // namespace backtrail::tracee::cache
