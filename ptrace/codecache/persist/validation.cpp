// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/validation.hpp"

#include <chrono>
#include <string>

#include <fmt/format.h>

#include "ptrace/codecache/persist/note_file.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

/// More than one tick of the kernel's clock for change times.
constexpr nanoseconds kSettled = std::chrono::milliseconds{50};

nanoseconds time_of(const timespec& time) {
  return std::chrono::seconds{time.tv_sec} + nanoseconds{time.tv_nsec};
}

/// Returns the note's text. Every write updates the change time, which no program can set.
std::string note_of(const struct stat& facts) {
  static const std::string boot = ProcFs{}.read("sys/kernel/random/boot_id").value_or("");
  if (boot.empty()) return {};
  return fmt::format("{} {} {} {} {}", facts.st_dev, facts.st_ino, facts.st_size,
                     time_of(facts.st_ctim).count(), boot);
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
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const nanoseconds age = time_of(now) - time_of(facts.st_ctim);
  const std::string note = note_of(facts);
  if (age >= kSettled && !note.empty()) write_note(validation_note(file), note);
}

}  // namespace backtrail::tracee::cache
