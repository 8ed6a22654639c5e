// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_pages.hpp"

#include <algorithm>
#include <array>

#include <elf.h>

namespace backtrail::server {

using arch::cpu::UserReg;
using decoder::CoreMapping;
using decoder::CoreSegment;
using decoder::values::PageKind;

CorePages::CorePages(const decoder::CoreFile& core, tracee::CoreMemory& memory, bool alone)
    : core_{core}, memory_{memory}, alone_{alone} {
  for (const decoder::CoreThread& thread : core.threads()) {
    const TraceeAddr area{thread.user[UserReg::kFsBase]};
    if (const CoreSegment* segment = core.segment_at(area)) thread_areas_.push_back(segment);
  }
}

bool CorePages::is_constant(TraceeAddr address) const {
  std::array<std::uint8_t, 1> byte{};
  return memory_.read_constant(address, byte) == byte.size();
}

/// Returns true if the address may lie in a file that other processes write. Data of ELF files is
/// mapped privately.
bool CorePages::is_shared_file(TraceeAddr address) const {
  const CoreMapping* mapping = core_.mapping_at(address);
  return mapping != nullptr && !memory_.is_elf(mapping->path);
}

/// Returns true for code that the program may have made itself. It cannot change while it is
/// write-protected; the solver sees changes of permissions.
bool CorePages::is_private_code(const CoreSegment& segment, TraceeAddr address) const {
  std::array<std::uint8_t, 1> byte{};
  return (segment.flags & PF_X) != 0 && !is_shared_file(address) &&
         memory_.read(address, byte) == byte.size();
}

PageKind CorePages::kind(TraceeAddr address) const {
  const CoreSegment* segment = core_.segment_at(address);
  if (segment == nullptr) return PageKind::kUnknown;
  if ((segment->flags & PF_W) == 0) {
    return is_constant(address) || is_private_code(*segment, address) ? PageKind::kConstant
                                                                      : PageKind::kUnknown;
  }
  const bool is_thread_area = std::ranges::find(thread_areas_, segment) != thread_areas_.end();
  if (!alone_ || is_thread_area || is_shared_file(address)) return PageKind::kUnknown;
  return PageKind::kPrivate;
}

}  // namespace backtrail::server
