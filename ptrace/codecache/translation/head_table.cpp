// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/head_table.hpp"

#include <utility>

#include "arch/base/check.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::size_t kFirstSlots = 1024;
/// Most slots in use, of every four; the table grows before there are more.
constexpr std::size_t kMostOfFour = 3;

/// Returns a hash that maps each 64 bytes of code to the four slots of one cache line.
std::size_t hash(TraceeAddr head) {
  constexpr std::uint64_t kFactor = 0x9e37'79b9'7f4a'7c15ULL;
  const std::uint64_t line = (head.value() >> 6U) * kFactor;
  return ((line ^ line >> 32U) << 2U) | (head.value() >> 4U & 3U);
}

}  // namespace

std::size_t HeadTable::slot_of(TraceeAddr head) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(head) & mask;
  while (slots_[slot].head != head && slots_[slot].head != kNowhere) slot = (slot + 1) & mask;
  return slot;
}

const HeadTable::Entry* HeadTable::find(TraceeAddr head) const {
  if (slots_.empty() || head == kNowhere) return nullptr;
  const Entry& entry = slots_[slot_of(head)];
  return entry.head == head ? &entry : nullptr;
}

HeadTable::Entry* HeadTable::find(TraceeAddr head) {
  return const_cast<Entry*>(std::as_const(*this).find(head));  // NOLINT
}

HeadTable::Entry& HeadTable::at(TraceeAddr head) {
  BT_CHECK(head != kNowhere);
  if (Entry* known = find(head)) return *known;
  if (4 * (used_ + 1) > kMostOfFour * slots_.size()) grow();
  Entry& made = slots_[slot_of(head)];
  made.head = head;
  ++used_;
  return made;
}

void HeadTable::grow() {
  const std::vector<Entry> old =
      std::exchange(slots_, std::vector<Entry>(slots_.empty() ? kFirstSlots : 2 * slots_.size()));
  for (const Entry& entry : old) {
    if (entry.head != kNowhere) slots_[slot_of(entry.head)] = entry;
  }
}

void HeadTable::clear() {
  slots_.clear();
  used_ = 0;
}

}  // namespace backtrail::tracee::cache
