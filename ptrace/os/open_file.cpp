// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/open_file.hpp"

#include <array>
#include <charconv>
#include <climits>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

/// Opens the folder of the links to what a task has open. Links are looked at from there, because
/// the way to them through /proc takes several times as long.
UniqueFd folder_of(pid_t tid) {
  const std::string path = ProcFs{}.path(tid, "fd");
  return UniqueFd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
}

/// The mode of the link tells how the file is open (proc_pid_fd(5)). nullopt if there is no such
/// descriptor.
std::optional<bool> is_open_for_writing(int folder, const char* name) {
  struct stat link {};
  if (::fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return (link.st_mode & S_IWUSR) != 0;
}

std::string target_of(int folder, const char* name) {
  std::array<char, PATH_MAX> path;  // NOLINT: filled by the kernel
  const ssize_t length = ::readlinkat(folder, name, path.data(), path.size());
  return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

bool is_in_proc(int folder, const char* name) {
  const UniqueFd file{::openat(folder, name, O_PATH | O_CLOEXEC)};
  struct statfs facts {};
  return file && ::fstatfs(file.get(), &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC;
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

/// Returns what a descriptor refers to. Only regular files get a path.
OpenFile describe(int folder, const char* name) {
  OpenFile file;
  struct stat facts {};
  if (::fstatat(folder, name, &facts, 0) != 0) return file;
  file.is_regular = S_ISREG(facts.st_mode);
  file.inode = facts.st_ino;
  if (!file.is_regular) return file;
  file.path = target_of(folder, name);
  if (!file.path.ends_with("/mem") || !is_in_proc(folder, name)) return file;
  file.is_memory = true;
  if (is_our_proc(facts)) file.memory_of = id_in(file.path);
  return file;
}

}  // namespace

std::optional<OpenFile> open_file(pid_t tid, int fd) {
  const UniqueFd folder = folder_of(tid);
  const std::string name = std::to_string(fd);
  const auto writes = is_open_for_writing(folder.get(), name.c_str());
  if (!folder || !writes) return std::nullopt;
  OpenFile file = describe(folder.get(), name.c_str());
  file.writes = *writes;
  return file;
}

std::vector<OpenFile> files_open_for_writing(pid_t tid) {
  std::vector<OpenFile> files;
  UniqueFd opened = folder_of(tid);
  if (!opened) return files;
  const std::unique_ptr<DIR, int (*)(DIR*)> list{::fdopendir(opened.get()), ::closedir};
  if (!list) return files;
  const int folder = opened.release();
  while (const dirent* each = ::readdir(list.get())) {  // NOLINT(concurrency-mt-unsafe)
    const char* name = each->d_name;
    if (name[0] == '.' || !is_open_for_writing(folder, name).value_or(false)) continue;
    OpenFile file = describe(folder, name);
    file.writes = true;
    if (file.is_regular) files.push_back(std::move(file));
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
