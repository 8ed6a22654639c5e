// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/mapped_file.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

Result<std::span<std::uint8_t>> map(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno("look at a file");
  if (S_ISDIR(status.st_mode)) return fail(errno_error(EISDIR, "map a file"));
  if (!S_ISREG(status.st_mode)) return fail(TraceErrc::kUnsupported, "map what is no plain file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return std::span<std::uint8_t>{};
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (at == MAP_FAILED) return fail_errno("map a file");
  return std::span{static_cast<std::uint8_t*>(at), size};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fail_errno("open a file");
  auto bytes = map(fd);
  ::close(fd);
  if (!bytes) return fail(bytes.error());
  return MappedFile{*bytes};
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_{std::exchange(other.bytes_, {})} {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace backtrail::tracee
