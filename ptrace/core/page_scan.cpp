// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/page_scan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "arch/base/page.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

// Bits of a pagemap entry. Source: linux/Documentation/admin-guide/mm/pagemap.rst.
constexpr std::uint64_t kPresent = 1ULL << 63U;
constexpr std::uint64_t kSwapped = 1ULL << 62U;

// PAGEMAP_SCAN, Linux 6.7. Source: linux/include/uapi/linux/fs.h; older headers lack it.
struct PageRegion {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t categories = 0;
};
struct ScanRequest {
  std::uint64_t size = sizeof(ScanRequest);
  std::uint64_t flags = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t walk_end = 0;
  std::uint64_t regions = 0;
  std::uint64_t region_count = 0;
  std::uint64_t max_pages = 0;
  std::uint64_t category_inverted = 0;
  std::uint64_t category_mask = 0;
  std::uint64_t category_any_of = 0;
  std::uint64_t return_mask = 0;
};
constexpr std::uint64_t kPageIsPresent = 1U << 3U;
constexpr std::uint64_t kPageIsSwapped = 1U << 4U;
constexpr unsigned long kPagemapScan = _IOWR('f', 16, ScanRequest);

void append(std::vector<AddressRange>& out, AddressRange range) {
  if (!out.empty() && out.back().end == range.begin) {
    out.back().end = range.end;
  } else {
    out.push_back(range);
  }
}

}  // namespace

PageScan::PageScan(pid_t pid)
    : pagemap_{::open(ProcFs{}.path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)} {}

std::vector<AddressRange> PageScan::populated(AddressRange range, std::uint64_t most_pages) {
  std::vector<AddressRange> out;
  if (pagemap_ && can_scan_ && scan(range, out)) return out;
  can_scan_ = false;
  out.clear();
  if (pagemap_ && read_entries(range, most_pages, out)) return out;
  return {range};
}

bool PageScan::scan(AddressRange range, std::vector<AddressRange>& out) const {
  std::array<PageRegion, 512> regions;
  ScanRequest request;
  request.begin = range.begin;
  request.end = range.end;
  request.regions = std::bit_cast<std::uint64_t>(regions.data());
  request.region_count = regions.size();
  request.category_any_of = kPageIsPresent | kPageIsSwapped;
  request.return_mask = kPageIsPresent | kPageIsSwapped;
  while (request.begin < range.end) {
    const int count = ::ioctl(pagemap_.get(), kPagemapScan, &request);
    if (count < 0 || request.walk_end <= request.begin) return false;
    for (int i = 0; i < count; ++i) {
      const PageRegion& region = regions.at(static_cast<std::size_t>(i));
      append(out, {region.begin, region.end});
    }
    request.begin = request.walk_end;
  }
  return true;
}

bool PageScan::read_entries(AddressRange range, std::uint64_t most_pages,
                            std::vector<AddressRange>& out) const {
  std::array<std::uint64_t, 4096> entries;
  std::uint64_t at = range.begin;
  std::uint64_t found = 0;
  while (at < range.end && found < most_pages) {
    const std::uint64_t wanted =
        std::min<std::uint64_t>((range.end - at) / kPageBytes, entries.size());
    const ssize_t got = ::pread(pagemap_.get(), entries.data(), wanted * sizeof(std::uint64_t),
                                static_cast<off_t>(at / kPageBytes * sizeof(std::uint64_t)));
    if (got < static_cast<ssize_t>(sizeof(std::uint64_t))) return false;
    const std::size_t count = static_cast<std::size_t>(got) / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < count; ++i, at += kPageBytes) {
      if ((entries.at(i) & (kPresent | kSwapped)) == 0) continue;
      append(out, {at, at + kPageBytes});
      ++found;
    }
  }
  return true;
}

}  // namespace backtrail::tracee
