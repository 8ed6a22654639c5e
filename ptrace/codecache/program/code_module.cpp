// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_module.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
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
    if (!file) file = UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!memory) memory = UniqueFd{::open(ProcFs{}.path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file || !memory ||
        !is_as_in(file.get(), range.offset + i * kPageBytes, memory.get(),
                  range.begin.value() + i * kPageBytes)) {
      return false;
    }
  }
  return true;
}

/// Returns the identity of memory that belongs to no file: the vdso, which the kernel adapts to the
/// CPU.
std::optional<std::uint64_t> identity_of_memory(pid_t pid, const ExecutableMap::Range& range) {
  std::vector<std::uint8_t> bytes(range.end - range.begin);
  const UniqueFd memory{::open(ProcFs{}.path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC)};
  if (!memory || !read_at(memory.get(), range.begin.value(), bytes.data(), bytes.size())) {
    return std::nullopt;
  }
  return std::hash<std::string_view>{}(
      {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()});
}

}  // namespace

std::optional<std::string> file_behind(pid_t pid, const ExecutableMap::Range& range) {
  return find_mapped_file(pid, range.path, range.inode, range.device);
}

std::optional<CodeModule> identify(pid_t pid, const ExecutableMap::Range& range,
                                   const FileIdentity& identity_of) {
  CodeModule module{.begin = range.begin, .end = range.end, .file_offset = range.offset};
  if (range.path == kVdso) {
    const auto identity = identity_of_memory(pid, range);
    if (!identity) return std::nullopt;
    module.identity = *identity;
    return module;
  }
  const auto path = file_behind(pid, range);
  const auto identity =
      path ? identity_of(*path, range.offset, range.end - range.begin) : std::nullopt;
  if (!identity || !is_unchanged(pid, range, *path)) return std::nullopt;
  module.identity = *identity;
  return module;
}

bool is_still(const CodeModule& module, const std::string& path, const FileIdentity& identity_of) {
  return path == kVdso ||
         identity_of(path, module.file_offset, module.end - module.begin) == module.identity;
}

}  // namespace backtrail::tracee::cache
