// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/memory_file.hpp"

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ptrace/codecache/memory/program_file.hpp"
#include "ptrace/os/page_population.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Part of a log segment that is populated at once where there are no large pages.
constexpr std::uint64_t kPreparedAtOnce = 256ULL << 10;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1

}  // namespace

Result<std::unique_ptr<MemoryFile>> MemoryFile::make() {
  BT_TRY(const UniqueFd uncounted, make_memfd(kBytes));
  UniqueFd file{
      ::open(fmt::format("/proc/self/fd/{}", uncounted.get()).c_str(), O_RDWR | O_CLOEXEC)};
  if (!file) return fail_errno("open a memfd");
  return map(std::move(file));
}

Result<std::unique_ptr<MemoryFile>> MemoryFile::map(UniqueFd file) {
  // Large pages need a matching address.
  void* room = ::mmap(nullptr, kBytes + kBigPageBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return fail_errno("mmap");
  auto* begin = static_cast<std::uint8_t*>(room);
  const std::uint64_t before =
      (kBigPageBytes - std::bit_cast<std::uintptr_t>(begin) % kBigPageBytes) % kBigPageBytes;
  void* mapped =
      ::mmap(begin + before, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0);
  if (before != 0) ::munmap(begin, before);
  ::munmap(begin + before + kBytes, kBigPageBytes - before);
  if (mapped == MAP_FAILED) {
    const auto failed = fail_errno("mmap");
    ::munmap(begin + before, kBytes);
    return failed;
  }
  return std::unique_ptr<MemoryFile>{
      new MemoryFile{std::move(file), static_cast<std::uint8_t*>(mapped)}};
}

MemoryFile::MemoryFile(UniqueFd file, std::uint8_t* host)
    : file_{std::move(file)}, inode_{inode_of(file_.get())}, host_{host} {}

MemoryFile::~MemoryFile() {
  ::munmap(host_, kBytes);
}

bool MemoryFile::make_big_page(std::uint64_t offset) {
  // Touch one small page there, then replace it by a large one.
  __atomic_fetch_or(host_ + offset, std::uint8_t{0}, __ATOMIC_RELAXED);
  return ::madvise(host_ + offset, kBigPageBytes, kCollapse) == 0;
}

bool MemoryFile::settle_next() {
  if (!make_big_page(settled_)) return false;
  settled_ += kBigPageBytes;
  return true;
}

void MemoryFile::leave_next_small() {
  settled_ += kBigPageBytes;
}

bool MemoryFile::prepare_segment(std::size_t area, std::size_t index) {
  std::uint64_t& prepared = prepared_.at(area * kAreaSegments + index);
  if (prepared >= kSegmentBytes) return false;
  const std::uint64_t at = segment_at(area, index) + prepared;
  // The guard page is in the last large page: its memory is used by nobody.
  if (prepared % kBigPageBytes == 0 && make_big_page(at)) {
    prepared += kBigPageBytes;
    return true;
  }
  const std::uint64_t bytes = std::min(kPreparedAtOnce, kSegmentBytes - prepared);
  populate_pages({host_ + at, bytes});
  prepared += bytes;
  return true;
}

bool MemoryFile::is_ours_alone() const {
  // Whoever opens the file meanwhile breaks the lease, which sends a signal to the holder: SIGIO,
  // which would end this process, or one that is ignored. The end of a lease resets the choice.
  if (::fcntl(fd(), F_SETSIG, SIGURG) != 0 || ::fcntl(fd(), F_SETLEASE, F_WRLCK) != 0) return false;
  return ::fcntl(fd(), F_SETLEASE, F_UNLCK) == 0;
}

void MemoryFile::clear() {
  std::fill(policy().begin(), policy().end(), std::uint8_t{0});
  for (std::size_t part = 0; part < parts_; ++part) {
    std::memset(host_ + kThreadsAt + part * kThreadBytes, 0,
                arch::cpu::translate::kThreadPageBytes);
  }
  parts_ = 0;
}

std::uint64_t MemoryFile::populated() const {
  constexpr std::uint64_t kBlockBytes = 512;  // stat(2)
  struct stat facts {};
  return ::fstat(fd(), &facts) == 0 ? static_cast<std::uint64_t>(facts.st_blocks) * kBlockBytes : 0;
}

}  // namespace backtrail::tracee::cache
