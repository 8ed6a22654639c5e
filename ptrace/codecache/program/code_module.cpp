// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_module.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "ptrace/os/process_files.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {
namespace {

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t kOfFile = 1ULL << 61U;
constexpr std::uint64_t kSwapped = 1ULL << 62U;
constexpr std::uint64_t kPresent = 1ULL << 63U;

bool is_own_page(std::uint64_t entry) {
  return (entry & kSwapped) != 0 || ((entry & kPresent) != 0 && (entry & kOfFile) == 0);
}

bool read_at(int fd, std::uint64_t at, void* out, std::size_t bytes) {
  return ::pread(fd, out, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

/// Returns true if the page equals the file's, even if it was written.
bool is_as_in(int file, std::uint64_t offset, int memory, std::uint64_t address) {
  std::array<std::uint8_t, kPageBytes> here{};
  std::array<std::uint8_t, kPageBytes> there{};
  const ssize_t bytes = ::pread(file, there.data(), there.size(), static_cast<off_t>(offset));
  return bytes >= 0 && read_at(memory, address, here.data(), here.size()) && here == there;
}

/// Returns true if the whole range is as in the file.
bool is_unchanged(pid_t pid, const ExecutableMap::Range& range, const std::string& path) {
  const std::uint64_t first = range.begin.value() / kPageBytes;
  std::vector<std::uint64_t> entries((range.end - range.begin) / kPageBytes);
  const UniqueFd map{::open(ProcFs{}.path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)};
  const std::size_t bytes = entries.size() * sizeof(std::uint64_t);
  if (!map || !read_at(map.get(), first * sizeof(std::uint64_t), entries.data(), bytes)) {
    return false;
  }
  UniqueFd file;
  UniqueFd memory;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!is_own_page(entries[i])) continue;
    if (!file) file = UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!memory) memory = UniqueFd{::open(ProcFs{}.path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file || !memory ||
        !is_as_in(file.get(), range.offset + i * kPageBytes, memory.get(),
                  range.begin.value() + i * kPageBytes)) {
      return false;
    }
  }
  return true;
}

/// Returns the identity of the kernel, to which the vdso belongs.
std::uint64_t kernel_identity() {
  static const std::uint64_t identity = [] {
    utsname kernel{};
    ::uname(&kernel);
    return std::hash<std::string>{}(std::string{static_cast<const char*>(kernel.release)} + ' ' +
                                    static_cast<const char*>(kernel.version));
  }();
  return identity;
}

}  // namespace

std::optional<std::string> file_behind(pid_t pid, const ExecutableMap::Range& range) {
  return find_mapped_file(pid, range.path, range.inode, range.device);
}

std::optional<CodeModule> identify(pid_t pid, const ExecutableMap::Range& range,
                                   const FileIdentity& identity_of) {
  CodeModule module{.begin = range.begin, .end = range.end, .file_offset = range.offset};
  if (range.path == kVdso) {
    module.identity = kernel_identity();
    return module;
  }
  const auto path = file_behind(pid, range);
  const auto identity = path ? identity_of(*path) : std::nullopt;
  if (!identity || !is_unchanged(pid, range, *path)) return std::nullopt;
  module.identity = *identity;
  return module;
}

}  // namespace backtrail::tracee::cache
