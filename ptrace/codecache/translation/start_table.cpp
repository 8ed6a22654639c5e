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

}  // namespace

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
