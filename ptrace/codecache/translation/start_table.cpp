// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/start_table.hpp"

#include <utility>

#include "arch/base/check.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::size_t kFirstSlots = 1024;
/// Most slots in use, of every four; the table grows before there are more. Nearly every look-up is
/// in vain, and has to reach a free slot.
constexpr std::size_t kMostOfFour = 2;

/// Returns a hash that maps each 64 bytes of code to the four slots of one cache line.
std::size_t hash(TraceeAddr start) {
  constexpr std::uint64_t kFactor = 0x9e37'79b9'7f4a'7c15ULL;
  const std::uint64_t line = (start.value() >> 6U) * kFactor;
  return ((line ^ line >> 32U) << 2U) | (start.value() >> 4U & 3U);
}

}  // namespace

std::size_t StartTable::slot_of(TraceeAddr start) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(start) & mask;
  while (slots_[slot].start != start && slots_[slot].start != kNowhere) slot = (slot + 1) & mask;
  return slot;
}

const StartTable::Entry* StartTable::find(TraceeAddr start) const {
  if (slots_.empty() || start == kNowhere) return nullptr;
  const Entry& entry = slots_[slot_of(start)];
  return entry.start == start ? &entry : nullptr;
}

StartTable::Entry* StartTable::find(TraceeAddr start) {
  return const_cast<Entry*>(std::as_const(*this).find(start));  // NOLINT
}

StartTable::Entry& StartTable::at(TraceeAddr start) {
  BT_CHECK(start != kNowhere);
  if (Entry* known = find(start)) return *known;
  if (4 * (used_ + 1) > kMostOfFour * slots_.size()) grow();
  Entry& made = slots_[slot_of(start)];
  made.start = start;
  ++used_;
  return made;
}

void StartTable::grow() {
  const std::vector<Entry> old =
      std::exchange(slots_, std::vector<Entry>(slots_.empty() ? kFirstSlots : 2 * slots_.size()));
  for (const Entry& entry : old) {
    if (entry.start != kNowhere) slots_[slot_of(entry.start)] = entry;
  }
}

void StartTable::clear() {
  slots_.clear();
  used_ = 0;
}

}  // namespace backtrail::tracee::cache
