// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/breakpoint_table.hpp"

#include <algorithm>
#include <vector>

#include "arch/cpu/program_abi.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::kInt3;

// Calls f(index, entry) for every entry in [address, address + size); `index` counts from
// `address`.
template <typename Entries, typename Function>
void for_each_in(Entries& entries, TraceeAddr address, std::size_t size, Function f) {
  for (auto it = entries.lower_bound(address); it != entries.end(); ++it) {
    const std::uint64_t index = it->first - address;
    if (index >= size) break;
    f(static_cast<std::size_t>(index), it->second);
  }
}

}  // namespace

Result<void> BreakpointTable::insert(TraceeAddr address) {
  const auto [it, added] = entries_.try_emplace(address);
  if (auto planted = plant(address, it->second); !planted) {
    entries_.erase(it);
    return planted;
  }
  return {};
}

// Reads the current byte first: a fresh mapping at this address has neither the int3 nor the byte
// that the table remembers.
Result<void> BreakpointTable::plant(TraceeAddr address, Entry& entry) {
  std::uint8_t now = 0;
  if (memory_->read(address, {&now, 1}) != 1) {
    entry.inserted = false;
    return fail(TraceErrc::kUnreadable, "insert a breakpoint", address.value());
  }
  if (entry.inserted && now == kInt3) return {};
  BT_CHECKED(memory_->write(address, {&kInt3, 1}));
  entry = Entry{now, true};
  return {};
}

Result<void> BreakpointTable::remove(TraceeAddr address) {
  const auto it = entries_.find(address);
  if (it == entries_.end())
    return fail(TraceErrc::kNotFound, "remove a breakpoint", address.value());
  std::uint8_t now = 0;
  const bool mapped = memory_->read(address, {&now, 1}) == 1;
  const bool was_inserted = it->second.inserted;
  BT_CHECKED(restore(address, it->second));
  entries_.erase(it);
  if (was_inserted && !mapped)
    return fail(TraceErrc::kUnreadable, "remove a breakpoint", address.value());
  return {};
}

Result<void> BreakpointTable::restore(TraceeAddr address, Entry& entry) {
  if (!entry.inserted) return {};
  std::uint8_t now = 0;
  const bool ours = memory_->read(address, {&now, 1}) == 1 && now == kInt3;
  if (ours) BT_CHECKED(memory_->write(address, {&entry.original, 1}));
  entry.inserted = false;
  return {};
}

Result<void> BreakpointTable::lift_all() {
  Result<void> first;
  for (auto& [address, entry] : entries_)
    if (auto done = restore(address, entry); !done && first) first = done;
  return first;
}

Result<void> BreakpointTable::reinsert_all() {
  Result<void> first;
  for (auto& [address, entry] : entries_)
    if (auto done = plant(address, entry); !done && first) first = done;
  return first;
}

Result<void> BreakpointTable::lift(TraceeAddr address) {
  const auto it = entries_.find(address);
  if (it == entries_.end()) return fail(TraceErrc::kNotFound, "lift a breakpoint", address.value());
  return restore(address, it->second);
}

Result<void> BreakpointTable::reinsert(TraceeAddr address) {
  const auto it = entries_.find(address);
  if (it == entries_.end())
    return fail(TraceErrc::kNotFound, "reinsert a breakpoint", address.value());
  return plant(address, it->second);
}

bool BreakpointTable::inserted(TraceeAddr address) const {
  const auto it = entries_.find(address);
  return it != entries_.end() && it->second.inserted;
}

std::optional<std::uint8_t> BreakpointTable::original(TraceeAddr address) const {
  const auto it = entries_.find(address);
  if (it == entries_.end() || !it->second.inserted) return std::nullopt;
  return it->second.original;
}

std::vector<TraceeAddr> BreakpointTable::addresses() const {
  std::vector<TraceeAddr> all;
  all.reserve(entries_.size());
  for (const auto& [address, entry] : entries_) all.push_back(address);
  return all;
}

std::vector<TraceeAddr> BreakpointTable::take_over(const BreakpointTable& other) {
  std::vector<TraceeAddr> taken;
  for (const auto& [address, entry] : other.entries_) {
    std::uint8_t now = 0;
    const bool is_there = entry.inserted && memory_->read(address, {&now, 1}) == 1 && now == kInt3;
    if (!is_there) continue;
    const auto [own, is_new] = entries_.try_emplace(address, entry);
    if (!own->second.inserted) own->second = entry;
    if (is_new) taken.push_back(address);
  }
  return taken;
}

void BreakpointTable::mask_read(TraceeAddr address, std::span<std::uint8_t> bytes) const {
  for_each_in(entries_, address, bytes.size(), [&](std::size_t index, const Entry& entry) {
    if (entry.inserted && bytes[index] == kInt3) bytes[index] = entry.original;
  });
}

std::size_t BreakpointTable::read(TraceeAddr address, std::span<std::uint8_t> out) const {
  const std::size_t count = memory_->read(address, out);
  mask_read(address, out.first(count));
  return count;
}

Result<void> BreakpointTable::write(TraceeAddr address, std::span<const std::uint8_t> data) {
  std::vector<std::uint8_t> shadowed(data.begin(), data.end());
  for_each_in(entries_, address, data.size(), [&](std::size_t index, const Entry& entry) {
    if (entry.inserted) shadowed[index] = kInt3;
  });
  BT_CHECKED(memory_->write(address, shadowed));
  for_each_in(entries_, address, data.size(), [&](std::size_t index, Entry& entry) {
    if (entry.inserted) entry.original = data[index];
  });
  return {};
}

BreakpointTable BreakpointTable::copy_for(TraceeMemory& child) const {
  BreakpointTable copy = *this;
  copy.memory_ = &child;
  return copy;
}

}  // namespace backtrail::tracee
