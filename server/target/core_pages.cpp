// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_pages.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <string>

#include <elf.h>

namespace backtrail::server {

using arch::cpu::UserReg;
using decoder::CoreMapping;
using decoder::CoreSegment;
using decoder::values::PageKind;

namespace {

/// The kernel's own structure has 32 bytes (linux/rseq.h).
constexpr std::uint64_t kMostRseqBytes = 4096;

/// Returns the two numbers of a fact, the first one in hexadecimal; nullopt if there are none.
std::optional<std::pair<std::uint64_t, std::uint64_t>> numbers_of(const decoder::CoreFile& core,
                                                                  const std::string& fact) {
  const auto found = core.about().find(fact);
  if (found == core.about().end()) return std::nullopt;
  std::pair<std::uint64_t, std::uint64_t> numbers;
  std::istringstream text{found->second};
  text >> std::setbase(0) >> numbers.first >> numbers.second;
  return text ? std::optional{numbers} : std::nullopt;
}

}  // namespace

CorePages::CorePages(const decoder::CoreFile& core, tracee::CoreMemory& memory, bool alone)
    : core_{core}, memory_{memory}, alone_{alone} {
  const auto writes = core.about().find("foreign-writes");
  change_anywhere_ = writes != core.about().end() && writes->second == "anywhere";
  if (const auto heap = numbers_of(core, "heap")) {
    heap_ = {TraceeAddr{heap->first}, TraceeAddr{heap->second}};
  }
  if (const auto rseq = numbers_of(core, "rseq"); rseq && rseq->second < kMostRseqBytes) {
    rseq_ = {TraceeAddr{rseq->first}, TraceeAddr{rseq->first + rseq->second}};
    return;
  }
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

bool CorePages::stable(TraceeAddr granule) const {
  constexpr std::uint64_t kGranuleBytes = 8;
  return !rseq_ || granule + kGranuleBytes <= rseq_->first || granule >= rseq_->second;
}

bool CorePages::all_is_private() const {
  const auto fact = core_.about().find("shared-memory");
  return alone_ && fact != core_.about().end() && fact->second == "none";
}

PageKind CorePages::kind(TraceeAddr address) const {
  const CoreSegment* segment = core_.segment_at(address);
  if (segment == nullptr || change_anywhere_) return PageKind::kUnknown;
  if ((segment->flags & PF_W) == 0) {
    return is_constant(address) || is_private_code(*segment, address) ? PageKind::kConstant
                                                                      : PageKind::kUnknown;
  }
  const bool is_thread_area = std::ranges::find(thread_areas_, segment) != thread_areas_.end();
  if (!alone_ || is_thread_area || is_shared_file(address)) return PageKind::kUnknown;
  return PageKind::kPrivate;
}

}  // namespace backtrail::server
