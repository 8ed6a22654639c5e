#include "server/session/host_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include <fmt/format.h>

namespace backtrail::server {
namespace {

using tracee::UniqueFd;

constexpr int kFirstFile = 3;
constexpr std::size_t kMaxFiles = 256;

/// A path, and the directory it is relative to.
struct Place {
  UniqueFd root;  ///< Root of another mount namespace; none: our own.
  std::string path;
};

Result<Place> locate(const std::string& path, pid_t pid) {
  if (pid == 0) return Place{{}, path};
  struct stat ours {};
  struct stat theirs {};
  if (::stat("/proc/self/ns/mnt", &ours) != 0) return fail_errno("stat /proc/self/ns/mnt");
  if (::stat(fmt::format("/proc/{}/ns/mnt", pid).c_str(), &theirs) != 0) {
    return fail_errno("stat /proc/PID/ns/mnt", static_cast<std::uint64_t>(pid));
  }
  if (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev) return Place{{}, path};
  // A directory opened through /proc/PID/root lies in that process' mount namespace.
  UniqueFd root{
      ::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!root) return fail_errno("open /proc/PID/root", static_cast<std::uint64_t>(pid));
  return Place{std::move(root), path};
}

Result<UniqueFd> open_at(const Place& place, const std::string& path, int flags, mode_t mode) {
  flags |= O_CLOEXEC | O_NOCTTY;
  int fd = -1;
  if (place.root) {
    // Absolute symbolic links in there must start at that root, not at ours.
    open_how how{};
    how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags));
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = RESOLVE_IN_ROOT;
    fd = static_cast<int>(::syscall(SYS_openat2, place.root.get(), path.c_str(), &how, sizeof how));
  } else {
    fd = ::open(path.c_str(), flags, mode);
  }
  if (fd < 0) return fail_errno("open");
  return UniqueFd{fd};
}

/// The directory a path lies in and the last part of its name, for calls that do not open it.
struct Parent {
  UniqueFd directory;  ///< None: the name is to be used as it is.
  std::string name;
};

Result<Parent> open_parent(Place place) {
  if (!place.root) return Parent{{}, std::move(place.path)};
  const std::size_t slash = place.path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : place.path.substr(0, slash + 1);
  BT_TRY(UniqueFd fd, open_at(place, directory, O_PATH | O_DIRECTORY, 0));
  return Parent{std::move(fd),
                slash == std::string::npos ? place.path : place.path.substr(slash + 1)};
}

int directory_of(const Parent& parent) {
  return parent.directory ? parent.directory.get() : AT_FDCWD;
}

}  // namespace

Result<int> HostFiles::open(const std::string& path, int flags, mode_t mode) {
  if (open_.size() >= kMaxFiles) return fail(errno_error(EMFILE, "open"));
  BT_TRY(const Place place, locate(path, file_system_));
  // Without O_NONBLOCK a FIFO nobody writes to would hold the whole server up.
  BT_TRY(UniqueFd fd, open_at(place, place.path, flags | O_NONBLOCK, mode & 07777U));
  int number = kFirstFile;
  while (open_.contains(number)) ++number;
  open_.emplace(number, std::move(fd));
  return number;
}

Result<int> HostFiles::descriptor(int file) const {
  const auto found = open_.find(file);
  // gdbserver's word for an unknown descriptor is EINVAL, not EBADF.
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

Result<struct stat> HostFiles::link_status(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return fail_errno("lstat");
  return status;
}

Result<void> HostFiles::unlink(const std::string& path) {
  BT_TRY(Place place, locate(path, file_system_));
  BT_TRY(const Parent parent, open_parent(std::move(place)));
  if (::unlinkat(directory_of(parent), parent.name.c_str(), 0) != 0) return fail_errno("unlink");
  return {};
}

Result<std::string> HostFiles::read_link(const std::string& path) {
  BT_TRY(Place place, locate(path, file_system_));
  BT_TRY(const Parent parent, open_parent(std::move(place)));
  std::string target(PATH_MAX, '\0');
  const ssize_t got =
      ::readlinkat(directory_of(parent), parent.name.c_str(), target.data(), target.size());
  if (got < 0) return fail_errno("readlink");
  target.resize(static_cast<std::size_t>(got));
  return target;
}

}  // namespace backtrail::server
