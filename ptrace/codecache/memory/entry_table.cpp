// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/entry_table.hpp"

#include <algorithm>

#include "arch/base/check.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/os/page_population.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

/// Growth by two index bits at a time, because each growth visits all indirect-branch entries.
constexpr std::size_t kGrowth = 4;
/// At most this many of eight places are in use.
constexpr std::size_t kMostOfEight = 3;
/// Places at first, where the CPU can use a part of the table. To fill kTableEntries takes as long
/// as a tenth of a short process.
constexpr std::size_t kFewEntries = 4096;

bool can_change_size() {
  return translate::faster_table_index() == translate::TableIndex::kMasked;
}

}  // namespace

std::size_t EntryTable::size_for(std::size_t ib_entries) {
  std::size_t entries = first_size();
  if (!can_change_size()) return entries;
  while (8 * ib_entries > kMostOfEight * entries && entries < translate::kMostTableEntries) {
    entries *= kGrowth;
  }
  return entries;
}

std::size_t EntryTable::first_size() {
  return can_change_size() ? kFewEntries : translate::kTableEntries;
}

std::uint64_t* EntryTable::at(std::size_t index) const {
  constexpr std::size_t kFirst = translate::kTableEntries;
  void* part = index < kFirst ? first_ : more_;
  return static_cast<std::uint64_t*>(part) + (index < kFirst ? index : index - kFirst);
}

TraceeAddr EntryTable::operator[](std::size_t index) const {
  return TraceeAddr{*at(index)};
}

void EntryTable::store(std::size_t index, TraceeAddr target) {
  __atomic_store_n(at(index), target.value(), __ATOMIC_RELEASE);
}

void EntryTable::fill(TraceeAddr target) {
  if (size_ == 0) set_size(first_size());
  for (std::size_t i = 0; i < size_; ++i) store(i, target);
}

void EntryTable::populate(std::size_t size) const {
  BT_CHECK(size >= size_ && size <= translate::kMostTableEntries);
  constexpr std::size_t kFirst = translate::kTableEntries;
  const std::size_t first = std::min(size, kFirst);
  if (first > size_) populate_pages({first_, first * sizeof(std::uint64_t)});
  if (size > kFirst && size > size_) {
    populate_pages({more_, (size - kFirst) * sizeof(std::uint64_t)});
  }
}

void EntryTable::grow(std::size_t size, TraceeAddr target) {
  populate(size);
  for (std::size_t i = size_; i < size; ++i) store(i, target);
  set_size(size);
}

void EntryTable::replace(std::span<const std::uint64_t> entries) {
  populate(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) store(i, TraceeAddr{entries[i]});
  set_size(entries.size());
}

void EntryTable::set_size(std::size_t entries) {
  size_ = entries;
  void* mask = mask_;
  __atomic_store_n(static_cast<std::uint32_t*>(mask), static_cast<std::uint32_t>(entries - 1),
                   __ATOMIC_RELEASE);
}

}  // namespace backtrail::tracee::cache
