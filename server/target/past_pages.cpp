// SPDX-License-Identifier: Apache-2.0
#include "server/target/past_pages.hpp"

#include <algorithm>
#include <array>

#include <elf.h>

namespace backtrail::server {

using decoder::CoreMapping;
using decoder::CoreSegment;
using decoder::values::PageKind;

PastPages::PastPages(tracee::ProgramMemory& memory, const MemoryFacts& facts, bool alone,
                     const std::vector<TraceeAddr>& thread_areas)
    : memory_{memory}, facts_{facts}, alone_{alone} {
  if (facts_.rseq) return;
  for (const TraceeAddr area : thread_areas) {
    const CoreSegment* segment = memory.image().segment_at(area);
    if (segment != nullptr) thread_areas_.push_back(segment);
  }
}

bool PastPages::is_constant(TraceeAddr address) const {
  std::array<std::uint8_t, 1> byte{};
  return memory_.read_constant(address, byte) == byte.size();
}

/// Returns true if the address may lie in a file that other processes write. Data of ELF files is
/// mapped privately.
bool PastPages::is_shared_file(TraceeAddr address) const {
  const CoreMapping* mapping = memory_.image().mapping_at(address);
  return mapping != nullptr && !memory_.is_elf(mapping->path);
}

/// Returns true for code that the program may have made itself. It cannot change while it is
/// write-protected; the solver sees changes of permissions that the thread itself made.
bool PastPages::is_private_code(const CoreSegment& segment, TraceeAddr address) const {
  std::array<std::uint8_t, 1> byte{};
  return (segment.flags & PF_X) != 0 && !facts_.changes_made_code && !is_shared_file(address) &&
         memory_.read(address, byte) == byte.size();
}

/// Returns true for data of an ELF file that was written and then write-protected, as the dynamic
/// linker does with what it has relocated (PT_GNU_RELRO). The solver sees changes of permissions.
bool PastPages::is_protected_data(TraceeAddr address) const {
  std::array<std::uint8_t, 1> byte{};
  const CoreMapping* mapping = memory_.image().mapping_at(address);
  return alone_ && mapping != nullptr && memory_.is_elf(mapping->path) &&
         memory_.read_persistent(address, byte) == byte.size();
}

bool PastPages::stable(TraceeAddr granule) const {
  constexpr std::uint64_t kGranuleBytes = 8;
  return !facts_.rseq || granule + kGranuleBytes <= facts_.rseq->first ||
         granule >= facts_.rseq->second;
}

bool PastPages::all_is_private() const {
  return alone_ && facts_.shares == false;
}

PageKind PastPages::kind(TraceeAddr address) const {
  const CoreSegment* segment = memory_.image().segment_at(address);
  if (segment == nullptr || change_anywhere()) return PageKind::kUnknown;
  if ((segment->flags & PF_W) == 0) {
    const bool keeps =
        is_constant(address) || is_private_code(*segment, address) || is_protected_data(address);
    return keeps ? PageKind::kConstant : PageKind::kUnknown;
  }
  const bool is_thread_area = std::ranges::find(thread_areas_, segment) != thread_areas_.end();
  if (!alone_ || is_thread_area || is_shared_file(address)) return PageKind::kUnknown;
  return PageKind::kPrivate;
}

}  // namespace backtrail::server
