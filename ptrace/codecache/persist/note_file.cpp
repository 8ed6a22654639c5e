// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/note_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr mode_t kOwnerFile = 0600;

}  // namespace

std::optional<std::string> read_note(const std::filesystem::path& file) {
  const UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!fd) return std::nullopt;
  std::string text(kMostNoteBytes + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got <= 0 || static_cast<std::size_t>(got) > kMostNoteBytes) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

void write_note(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path made = fmt::format("{}.{}", file.string(), ::getpid());
  UniqueFd fd{
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kOwnerFile)};
  if (!fd) return;
  const bool whole = ::write(fd.get(), text.data(), text.size()) == std::ssize(text);
  fd.reset();
  if (!whole || ::rename(made.c_str(), file.c_str()) != 0) ::unlink(made.c_str());
}

}  // namespace backtrail::tracee::cache
