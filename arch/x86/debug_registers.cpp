// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/debug_registers.hpp"

#include <algorithm>
#include <limits>

namespace backtrail::arch::x86 {
namespace {

// DR7: bit 2i enables slot i for the task (bit 2i+1 globally, unused). Bits from 16+4i on hold the
// access type (two bits) and the length (two bits).
constexpr unsigned kFieldsAt = 16;
constexpr unsigned kFieldBits = 4;

constexpr std::uint64_t enable_bit(std::size_t slot) {
  return std::uint64_t{1} << (2 * slot);
}
constexpr std::uint64_t enable_mask(std::size_t slot) {
  return std::uint64_t{3} << (2 * slot);
}

constexpr std::uint64_t field(std::size_t slot, std::uint64_t value) {
  return value << (kFieldsAt + kFieldBits * slot);
}

/// Returns the LEN code of DR7. 8 bytes were added later and got the code between 2 and 4.
constexpr std::uint64_t length_code(std::uint64_t bytes) {
  switch (bytes) {
    case 2:
      return 1;
    case 4:
      return 3;
    case 8:
      return 2;
    default:
      return 0;
  }
}

constexpr std::uint64_t field_value(std::uint64_t bytes, DebugAccess access) {
  return static_cast<std::uint64_t>(access) | (length_code(bytes) << 2);
}

/// Returns the length of the longest naturally aligned piece at the start of [address, address +
/// length).
std::uint64_t first_piece(std::uint64_t address, std::uint64_t length) {
  std::uint64_t bytes = 8;
  while (bytes > length || address % bytes != 0) bytes /= 2;
  return bytes;
}

}  // namespace

bool DebugRegisters::holds(std::size_t slot, const Range& aligned) const {
  return references_[slot] != 0 && address_[slot] == aligned.address.value() &&
         ((control_ >> (kFieldsAt + kFieldBits * slot)) & 0xf) ==
             field_value(aligned.length, aligned.access);
}

bool DebugRegisters::take_slot(const Range& aligned) {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (!holds(slot, aligned)) continue;
    ++references_[slot];
    return true;
  }
  const auto unused = std::find(references_.begin(), references_.end(), 0U);
  if (unused == references_.end()) return false;
  const auto slot = static_cast<std::size_t>(unused - references_.begin());
  references_[slot] = 1;
  address_[slot] = aligned.address.value();
  control_ |= field(slot, field_value(aligned.length, aligned.access)) | enable_bit(slot);
  return true;
}

void DebugRegisters::release_slot(const Range& aligned) {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (!holds(slot, aligned)) continue;
    if (--references_[slot] == 0) {
      address_[slot] = 0;
      control_ &= ~(field(slot, 0xf) | enable_mask(slot));
    }
    return;
  }
}

Result<void> DebugRegisters::insert(TraceeAddr address, std::uint64_t length, DebugAccess access) {
  const bool wraps =
      length != 0 && address.value() > std::numeric_limits<std::uint64_t>::max() - (length - 1);
  if (length == 0 || wraps || (access == DebugAccess::kExecute && length != 1)) {
    return fail(TraceErrc::kInvalidArgument, "insert debug register", address.value());
  }
  DebugRegisters changed = *this;
  TraceeAddr at = address;
  for (std::uint64_t left = length; left != 0;) {
    const std::uint64_t bytes = first_piece(at.value(), left);
    if (!changed.take_slot({at, bytes, access})) {
      return fail(TraceErrc::kBusy, "insert debug register", address.value());
    }
    at += bytes;
    left -= bytes;
  }
  const Range range{address, length, access};
  const auto found = std::find_if(changed.inserted_.begin(), changed.inserted_.end(),
                                  [&](const Inserted& i) { return i.range == range; });
  if (found != changed.inserted_.end()) {
    ++found->count;
  } else {
    changed.inserted_.push_back({range, 1});
  }
  *this = std::move(changed);
  return {};
}

Result<void> DebugRegisters::remove(TraceeAddr address, std::uint64_t length, DebugAccess access) {
  const Range range{address, length, access};
  const auto found = std::find_if(inserted_.begin(), inserted_.end(),
                                  [&](const Inserted& i) { return i.range == range; });
  if (found == inserted_.end()) {
    return fail(TraceErrc::kNotFound, "remove debug register", address.value());
  }
  if (--found->count == 0) inserted_.erase(found);
  for (std::uint64_t left = length; left != 0;) {
    const std::uint64_t bytes = first_piece(address.value(), left);
    release_slot({address, bytes, access});
    address += bytes;
    left -= bytes;
  }
  return {};
}

std::optional<DebugRegisters::Hit> DebugRegisters::hit(std::uint64_t dr6) const {
  std::optional<Hit> breakpoint;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const bool fired = ((dr6 >> slot) & 1U) != 0;
    if (!fired || (control_ & enable_mask(slot)) == 0) continue;
    const auto access =
        static_cast<DebugAccess>((control_ >> (kFieldsAt + kFieldBits * slot)) & 3U);
    const Hit hit{TraceeAddr{address_[slot]}, access};
    if (access != DebugAccess::kExecute) return hit;
    if (!breakpoint) breakpoint = hit;
  }
  return breakpoint;
}

}  // namespace backtrail::arch::x86
