// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/procfs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

constexpr const char* kReadOperation = "read a file in /proc";

// Returns errno as an error; kTraceeGone if the process has ended.
Error process_error(const char* operation, pid_t id) {
  const auto detail = static_cast<std::uint64_t>(id);
  return errno == ENOENT || errno == ESRCH ? make_error(TraceErrc::kTraceeGone, operation, detail)
                                           : errno_error(operation, detail);
}

// Files in /proc have no size, and some are generated anew at each read, so read in large pieces.
bool read_file(const std::string& path, std::string& out) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) return false;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    out.append(piece.data(), static_cast<std::size_t>(got));
  }
}

bool read_link(const std::string& path, std::string& out) {
  std::string buffer(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (length < 0) return false;
  out.assign(buffer, 0, static_cast<std::size_t>(length));
  return true;
}

std::optional<pid_t> to_id(std::string_view text) {
  pid_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size() || id <= 0) return std::nullopt;
  return id;
}

// Lists the numeric entries of a folder, ascending. Returns false and sets errno if it cannot be
// opened.
bool list_ids(const std::string& path, std::vector<pid_t>& out) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return false;
  while (const dirent* entry = ::readdir(folder))
    if (const auto id = to_id(entry->d_name)) out.push_back(*id);
  ::closedir(folder);
  std::sort(out.begin(), out.end());
  return true;
}

std::string without_newline(std::string text) {
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string ProcFs::path(pid_t id, std::string_view name) const {
  return fmt::format("{}/{}/{}", root_, id, name);
}

Result<std::string> ProcFs::read(std::string_view name) const {
  std::string text;
  if (!read_file(fmt::format("{}/{}", root_, name), text)) return fail_errno(kReadOperation);
  return text;
}

Result<std::string> ProcFs::read(pid_t id, std::string_view name) const {
  std::string text;
  if (!read_file(path(id, name), text)) return fail(process_error(kReadOperation, id));
  return text;
}

Result<ProcStat> ProcFs::stat(pid_t id) const {
  BT_TRY(const std::string text, read(id, "stat"));
  const auto parsed = parse_stat(text);
  if (!parsed) return fail(TraceErrc::kMalformed, "/proc/PID/stat", static_cast<unsigned>(id));
  return *parsed;
}

Result<ProcStat> ProcFs::task_stat(pid_t pid, pid_t tid) const {
  BT_TRY(const std::string text, read(pid, fmt::format("task/{}/stat", tid)));
  const auto parsed = parse_stat(text);
  if (!parsed) return fail(TraceErrc::kMalformed, "/proc/PID/stat", static_cast<unsigned>(tid));
  return *parsed;
}

Result<ProcStatus> ProcFs::status(pid_t id) const {
  BT_TRY(const std::string text, read(id, "status"));
  const auto parsed = parse_status(text);
  if (!parsed) return fail(TraceErrc::kMalformed, "/proc/PID/status", static_cast<unsigned>(id));
  return *parsed;
}

Result<std::optional<std::int64_t>> ProcFs::blocking_call(pid_t id) const {
  // "running", "-1 SP PC" or "NUMBER ARGUMENTS SP PC" (proc_pid_syscall() in fs/proc/base.c).
  BT_TRY(const std::string text, read(id, "syscall"));
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::optional<std::int64_t>{};
  return std::optional{number};
}

Result<std::vector<pid_t>> ProcFs::tasks(pid_t pid) const {
  std::vector<pid_t> ids;
  if (!list_ids(path(pid, "task"), ids)) return fail(process_error("list /proc/PID/task", pid));
  return ids;
}

Result<pid_t> ProcFs::live_task(pid_t pid) const {
  const auto lives = [this](pid_t id) {
    const auto facts = stat(id);
    return facts && !facts->zombie();
  };
  // The leader usually lives on; other threads may vanish at any moment.
  if (lives(pid)) return pid;
  BT_TRY(const std::vector<pid_t> ids, tasks(pid));
  for (const pid_t id : ids)
    if (lives(id)) return id;
  return fail(TraceErrc::kTraceeGone, "look for a live thread", static_cast<unsigned>(pid));
}

Result<std::vector<pid_t>> ProcFs::children(pid_t pid) const {
  BT_TRY(const std::vector<pid_t> ids, tasks(pid));
  std::vector<pid_t> out;
  for (const pid_t id : ids) {
    const auto text = read(pid, fmt::format("task/{}/children", id));
    if (!text) continue;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      if (const auto child = to_id(rest.substr(0, space))) out.push_back(*child);
      rest.remove_prefix(std::min(space + 1, rest.size()));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<pid_t>> ProcFs::processes() const {
  std::vector<pid_t> ids;
  if (!list_ids(root_, ids)) return fail_errno("list /proc");
  return ids;
}

Result<std::string> ProcFs::comm(pid_t id) const {
  BT_TRY(std::string text, read(id, "comm"));
  return without_newline(std::move(text));
}

Result<std::string> ProcFs::exe(pid_t id) const {
  std::string target;
  if (!read_link(path(id, "exe"), target)) return fail(process_error("read /proc/PID/exe", id));
  return target;
}

Result<std::string> ProcFs::working_directory(pid_t id) const {
  std::string target;
  if (!read_link(path(id, "cwd"), target)) return fail(process_error("read /proc/PID/cwd", id));
  return target;
}

Result<std::vector<std::string>> ProcFs::command_line(pid_t id) const {
  BT_TRY(const std::string text, read(id, "cmdline"));
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<std::vector<std::uint8_t>> ProcFs::auxv(pid_t id) const {
  BT_TRY(const std::string text, read(id, "auxv"));
  return std::vector<std::uint8_t>(text.begin(), text.end());
}

Result<std::vector<MapEntry>> ProcFs::maps(pid_t id) const {
  BT_TRY(const std::string text, read(id, "maps"));
  return parse_maps(text);
}

Result<arch::Isa> ProcFs::isa(pid_t id) const {
  const UniqueFd fd{::open(path(id, "exe").c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd) return fail(process_error("open /proc/PID/exe", id));
  std::string header(20, '\0');
  const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
  if (got < 0) return fail(process_error("read /proc/PID/exe", id));
  header.resize(static_cast<std::size_t>(got));
  const auto isa = elf_isa(header);
  if (!isa) return fail(TraceErrc::kUnsupported, "executable's format", static_cast<unsigned>(id));
  return *isa;
}

}  // namespace backtrail::tracee
