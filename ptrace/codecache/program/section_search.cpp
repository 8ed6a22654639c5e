// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/section_search.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "arch/base/page.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {

bool has_abort_signature(std::span<const std::uint8_t> code) {
  constexpr std::array<std::uint8_t, 4> kSignature{0x53, 0x30, 0x05, 0x53};
  constexpr std::array<std::uint8_t, 2> kMoveToR10d{0x41, 0xba};
  const std::uint8_t* const begin = code.data();
  const std::uint8_t* const end = begin + code.size();
  for (const std::uint8_t* at = begin; end - at >= std::ssize(kSignature); ++at) {
    // The first byte is rare, and memchr(3) much faster than std::search().
    const auto places = static_cast<std::size_t>(end - at) - kSignature.size() + 1;
    at = static_cast<const std::uint8_t*>(std::memchr(at, kSignature[0], places));
    if (at == nullptr) return false;
    if (!std::equal(kSignature.begin(), kSignature.end(), at)) continue;
    const bool registers =
        at - begin >= std::ssize(kMoveToR10d) &&
        std::equal(kMoveToR10d.begin(), kMoveToR10d.end(), at - kMoveToR10d.size());
    if (!registers) return true;
  }
  return false;
}

bool file_has_abort_signature(const std::string& path, std::uint64_t offset, std::uint64_t bytes) {
  const UniqueFd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0) return true;
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (offset >= size) return false;
  bytes = std::min(bytes, size - offset);
  const std::uint64_t before = offset % kPageBytes;
  // All of it is read, in most files.
  void* mapped = ::mmap(nullptr, before + bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file.get(),
                        static_cast<off_t>(offset - before));
  if (mapped == MAP_FAILED) return true;
  const std::span all{static_cast<const std::uint8_t*>(mapped), before + bytes};
  const bool found = has_abort_signature(all.subspan(before));
  ::munmap(mapped, all.size());
  return found;
}

}  // namespace backtrail::tracee::cache
