// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/open_file.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <filesystem>
#include <string_view>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

bool is_in_proc(const std::string& link) {
  struct statfs facts {};
  return ::statfs(link.c_str(), &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC;
}

/// Returns true if the file belongs to the server's own /proc, whose pids mean the same to the
/// server.
bool is_our_proc(const struct stat& file) {
  struct stat ours {};
  return ::stat("/proc", &ours) == 0 && ours.st_dev == file.st_dev;
}

/// Returns the number in ".../NUMBER/mem".
std::optional<pid_t> id_in(std::string_view path) {
  path.remove_suffix(std::string_view{"/mem"}.size());
  const std::size_t slash = path.rfind('/');
  const std::string_view digits = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  pid_t id = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, id);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional{id} : std::nullopt;
}

}  // namespace

std::optional<OpenFile> open_file(pid_t tid, int fd) {
  const std::string link = ProcFs{}.path(tid, fmt::format("fd/{}", fd));
  struct stat itself {};
  if (::lstat(link.c_str(), &itself) != 0) return std::nullopt;
  OpenFile file;
  // The mode of the link tells how the file is open (proc_pid_fd(5)).
  file.writes = (itself.st_mode & S_IWUSR) != 0;
  std::string path(PATH_MAX, '\0');
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  struct stat facts {};
  if (::stat(link.c_str(), &facts) != 0) return file;
  file.is_regular = S_ISREG(facts.st_mode);
  file.inode = facts.st_ino;
  file.path = std::move(path);
  if (!file.path.ends_with("/mem") || !file.is_regular || !is_in_proc(link)) return file;
  file.is_memory = true;
  if (is_our_proc(facts)) file.memory_of = id_in(file.path);
  return file;
}

std::vector<OpenFile> files_open_for_writing(pid_t tid) {
  std::vector<OpenFile> files;
  std::error_code error;
  std::filesystem::directory_iterator each{ProcFs{}.path(tid, "fd"), error};
  for (; !error && each != std::filesystem::directory_iterator{}; each.increment(error)) {
    const std::string name = each->path().filename().string();
    int fd = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec != std::errc{}) continue;
    struct stat itself {};
    if (::lstat(each->path().c_str(), &itself) != 0 || (itself.st_mode & S_IWUSR) == 0) continue;
    if (auto file = open_file(tid, fd); file && file->is_regular) files.push_back(std::move(*file));
  }
  return files;
}

std::optional<std::uint64_t> file_position(pid_t tid, int fd) {
  const auto text = ProcFs{}.read(tid, fmt::format("fdinfo/{}", fd));
  if (!text) return std::nullopt;
  constexpr std::string_view kName = "pos:";
  const std::size_t at = text->find(kName);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digits = text->find_first_of("0123456789", at);
  if (digits == std::string::npos) return std::nullopt;
  std::uint64_t position = 0;
  const auto parsed = std::from_chars(text->data() + digits, text->data() + text->size(), position);
  return parsed.ec == std::errc{} ? std::optional{position} : std::nullopt;
}

}  // namespace backtrail::tracee
