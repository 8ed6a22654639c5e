// SPDX-License-Identifier: Apache-2.0
#include "server/session/host_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ptrace/os/process_files.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {
namespace {

using tracee::UniqueFd;

constexpr int kFirstFile = 3;
constexpr std::size_t kMaxFiles = 256;

/// A directory that absolute paths start from.
struct Root {
  UniqueFd directory;  ///< Not set: the server's own root.
  struct stat status {};

  [[nodiscard]] bool is(const Root& other) const {
    return status.st_dev == other.status.st_dev && status.st_ino == other.status.st_ino;
  }
};

Result<Root> open_root(const std::string& path) {
  Root root{.directory = UniqueFd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)}};
  if (!root.directory) return fail_errno("open a root");
  if (::fstat(root.directory.get(), &root.status) != 0) return fail_errno("fstat");
  return root;
}

/// Returns a live thread of the process. A leader that has ended has neither root nor program in
/// /proc.
pid_t living(pid_t pid) {
  return tracee::ProcFs{}.live_task(pid).value_or(pid);
}

/// Returns the directories that paths of the process may start from, likeliest first. Never empty.
Result<std::vector<Root>> roots_of(pid_t pid) {
  std::vector<Root> roots;
  if (pid == 0) {
    roots.emplace_back();
    return roots;
  }
  const pid_t tid = living(pid);
  BT_TRY(const bool ours, tracee::shares_our_mounts(tid));
  BT_TRY(const Root own, open_root("/"));
  auto root = open_root(fmt::format("/proc/{}/root", tid));
  // Without permission to look at the process's root, assume the server's.
  if (!root && !ours) return fail(root.error());
  if (root && (!ours || !root->is(own))) roots.push_back(std::move(*root));
  if (ours) {
    roots.emplace_back();
  } else if (auto above = open_root(tracee::uppermost_folder(tid));
             above && !above->is(roots.front())) {
    roots.push_back(std::move(*above));
  }
  return roots;
}

/// Returns the /proc link to the process's program if `path` is that link or the program's name.
std::optional<std::string> program_of(pid_t pid, const std::string& path) {
  if (pid == 0) return std::nullopt;
  const std::string link = fmt::format("/proc/{}/exe", living(pid));
  // The process may see another /proc or none.
  if (path == link) return link;
  std::string target(PATH_MAX, '\0');
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  if (length < 0) return std::nullopt;
  target.resize(static_cast<std::size_t>(length));
  return target == path ? std::optional{link} : std::nullopt;
}

/// Returns true for errors after which another root may still have the file.
bool is_absent(const Error& error) {
  return error.is(std::errc::no_such_file_or_directory) || error.is(std::errc::not_a_directory);
}

Result<UniqueFd> open_at(const Root& root, const std::string& path, int flags, mode_t mode) {
  flags |= O_CLOEXEC | O_NOCTTY;
  int fd = -1;
  if (root.directory) {
    // Absolute symbolic links below that root must start at it, not at the server's root.
    open_how how{};
    how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags));
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = RESOLVE_IN_ROOT;
    fd = static_cast<int>(
        ::syscall(SYS_openat2, root.directory.get(), path.c_str(), &how, sizeof how));
  } else {
    fd = ::open(path.c_str(), flags, mode);
  }
  if (fd < 0) return fail_errno("open");
  return UniqueFd{fd};
}

/// The directory that a path lies in and the last part of its name, for system calls that do not
/// open the file.
struct Parent {
  UniqueFd directory;  ///< Not set: use `name` as it is.
  std::string name;
};

Result<Parent> open_parent(const Root& root, const std::string& path) {
  if (!root.directory) return Parent{{}, path};
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  BT_TRY(UniqueFd fd, open_at(root, directory, O_PATH | O_DIRECTORY, 0));
  return Parent{std::move(fd), slash == std::string::npos ? path : path.substr(slash + 1)};
}

int directory_of(const Parent& parent) {
  return parent.directory ? parent.directory.get() : AT_FDCWD;
}

/// Calls `action` with the likeliest root of the process's paths, then with the next ones while the
/// file is absent. Returns the last call's result.
template <typename T>
Result<T> with_roots(pid_t pid, const std::function<Result<T>(const Root&)>& action) {
  BT_TRY(const std::vector<Root> roots, roots_of(pid));
  for (std::size_t i = 0;; ++i) {
    auto done = action(roots[i]);
    if (done || !is_absent(done.error()) || i + 1 == roots.size()) return done;
  }
}

/// with_roots() for system calls that take a directory and a name in it.
template <typename T>
Result<T> with_parents(pid_t pid, const std::string& path,
                       const std::function<Result<T>(const Parent&)>& action) {
  return with_roots<T>(pid, [&](const Root& root) -> Result<T> {
    BT_TRY(const Parent parent, open_parent(root, path));
    return action(parent);
  });
}

}  // namespace

Result<int> HostFiles::open(const std::string& path, int flags, mode_t mode) {
  if (open_.size() >= kMaxFiles) return fail(errno_error(EMFILE, "open"));
  // Without O_NONBLOCK, opening a FIFO that has no writer would block the whole server.
  const auto open_below = [&](const Root& root) {
    return open_at(root, path, flags | O_NONBLOCK, mode & 07777U);
  };
  UniqueFd fd;
  if (const auto program = program_of(file_system_, path); program && flags == O_RDONLY) {
    fd = open_at({}, *program, flags, 0).value_or(UniqueFd{});
  }
  if (!fd) {
    BT_TRY(fd, with_roots<UniqueFd>(file_system_, open_below));
  }
  int number = kFirstFile;
  while (open_.contains(number)) ++number;
  open_.emplace(number, std::move(fd));
  return number;
}

Result<int> HostFiles::descriptor(int file) const {
  const auto found = open_.find(file);
  // gdbserver reports EINVAL, not EBADF, for an unknown descriptor.
  if (found == open_.end()) return fail(errno_error(EINVAL, "descriptor"));
  return found->second.get();
}

Result<void> HostFiles::close(int file) {
  BT_CHECKED(descriptor(file));
  open_.erase(file);
  return {};
}

Result<std::vector<std::uint8_t>> HostFiles::read(int file, std::size_t size_bytes,
                                                  std::uint64_t offset) {
  BT_TRY(const int fd, descriptor(file));
  std::vector<std::uint8_t> data(size_bytes);
  const ssize_t got = ::pread(fd, data.data(), data.size(), static_cast<off_t>(offset));
  if (got < 0) return fail_errno("pread", offset);
  data.resize(static_cast<std::size_t>(got));
  return data;
}

Result<std::size_t> HostFiles::write(int file, std::span<const std::uint8_t> data,
                                     std::uint64_t offset) {
  BT_TRY(const int fd, descriptor(file));
  const ssize_t put = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
  if (put < 0) return fail_errno("pwrite", offset);
  return static_cast<std::size_t>(put);
}

Result<struct stat> HostFiles::status(int file) {
  BT_TRY(const int fd, descriptor(file));
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno("fstat");
  return status;
}

Result<struct stat> HostFiles::link_status(const std::string& path) const {
  return with_parents<struct stat>(
      file_system_, path, [](const Parent& parent) -> Result<struct stat> {
        struct stat status {};
        // The name is empty if the path ends with a slash.
        if (::fstatat(directory_of(parent), parent.name.c_str(), &status,
                      AT_SYMLINK_NOFOLLOW | (parent.directory ? AT_EMPTY_PATH : 0)) != 0) {
          return fail_errno("lstat");
        }
        return status;
      });
}

Result<void> HostFiles::unlink(const std::string& path) {
  return with_parents<void>(file_system_, path, [](const Parent& parent) -> Result<void> {
    if (::unlinkat(directory_of(parent), parent.name.c_str(), 0) != 0) return fail_errno("unlink");
    return {};
  });
}

Result<std::string> HostFiles::read_link(const std::string& path) {
  return with_parents<std::string>(
      file_system_, path, [](const Parent& parent) -> Result<std::string> {
        std::string target(PATH_MAX, '\0');
        const ssize_t got =
            ::readlinkat(directory_of(parent), parent.name.c_str(), target.data(), target.size());
        if (got < 0) return fail_errno("readlink");
        target.resize(static_cast<std::size_t>(got));
        return target;
      });
}

}  // namespace backtrail::server
