// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/own_memory.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "arch/base/page.hpp"
#include "arch/cpu/syscall_abi.hpp"

namespace backtrail::tracee::cache {
namespace {

using Names = CallAround::Names;

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.first < b.second && b.first < a.second;
}

bool names_any(const MemoryRange& range, std::span<const MemoryRange> ours) {
  return std::ranges::any_of(ours, [&](const MemoryRange& each) { return overlap(range, each); });
}

/// Returns whole pages; an empty range if the kernel refuses the arguments.
MemoryRange pages(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = round_up_to_pages(begin + bytes);
  const bool is_refused = begin != page_begin(begin) || begin + bytes < begin || end < begin;
  return is_refused ? MemoryRange{} : MemoryRange{TraceeAddr{begin}, TraceeAddr{end}};
}

std::vector<MemoryRange> without(const MemoryRange& range, std::span<const MemoryRange> ours) {
  std::vector<MemoryRange> parts;
  TraceeAddr from = range.first;
  for (const MemoryRange& each : ours) {
    if (!overlap({from, range.second}, each)) continue;
    if (from < each.first) parts.emplace_back(from, each.first);
    from = each.second;
  }
  if (from < range.second) parts.emplace_back(from, range.second);
  return parts;
}

/// The kernel takes a segment's length from the segment.
bool maps_segment_over(const arch::cpu::UserRegs& regs, std::span<const MemoryRange> ours) {
  const TraceeAddr at{syscall_argument(regs, 1)};
  return (syscall_argument(regs, 2) & SHM_REMAP) != 0 && names_any({at, at + 1}, ours);
}

CallAround moving(const arch::cpu::UserRegs& regs, std::span<const MemoryRange> ours) {
  // A length of 0 stands for the whole mapping.
  const MemoryRange from =
      pages(syscall_argument(regs, 0), std::max<std::uint64_t>(syscall_argument(regs, 1), 1));
  if (names_any(from, ours)) return {Names::kMappings, {}, EFAULT};
  const bool is_placed = (syscall_argument(regs, 3) & MREMAP_FIXED) != 0;
  const MemoryRange to = pages(syscall_argument(regs, 4), syscall_argument(regs, 2));
  if (is_placed && names_any(to, ours)) return {Names::kPlaces, {}, 0};
  return {};
}

}  // namespace

bool is_in(TraceeAddr address, std::span<const MemoryRange> ranges) {
  return names_any({address, address + 1}, ranges);
}

CallAround call_around(const arch::cpu::UserRegs& regs, std::span<const MemoryRange> ours) {
  const MemoryRange range = pages(syscall_argument(regs, 0), syscall_argument(regs, 1));
  switch (syscall_number(regs)) {
    case SYS_mmap:
      if ((syscall_argument(regs, 3) & MAP_FIXED) == 0 || !names_any(range, ours)) return {};
      return {Names::kPlaces, {}, 0};
    case SYS_shmat:
      return {maps_segment_over(regs, ours) ? Names::kPlaces : Names::kNothing, {}, 0};
    case SYS_mremap:
      return moving(regs, ours);
    case SYS_munmap:
      if (!names_any(range, ours)) return {};
      return {Names::kMappings, without(range, ours), 0};
    case SYS_madvise:
      if (!names_any(range, ours)) return {};
      return {Names::kMappings, without(range, ours), ENOMEM};
    case SYS_mprotect:
    case SYS_pkey_mprotect: {
      // These stop where nothing is mapped.
      if (!names_any(range, ours)) return {};
      std::vector<MemoryRange> parts = without(range, ours);
      std::erase_if(parts, [&](const MemoryRange& part) { return part.first != range.first; });
      return {Names::kMappings, std::move(parts), ENOMEM};
    }
    case SYS_remap_file_pages:
      if (!names_any(range, ours)) return {};
      return {Names::kMappings, {}, EINVAL};
    default:
      return {};
  }
}

}  // namespace backtrail::tracee::cache
