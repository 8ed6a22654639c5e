// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/thread_memory.hpp"

#include <cstring>

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;
using arch::cpu::translate::Request;
using arch::cpu::translate::Slot;

std::uint64_t ThreadMemory::read(Slot slot) const {
  std::uint64_t value = 0;
  std::memcpy(&value, host_ + static_cast<std::uint32_t>(slot), sizeof value);
  return value;
}

void ThreadMemory::write(Slot slot, std::uint64_t value) {
  std::memcpy(host_ + static_cast<std::uint32_t>(slot), &value, sizeof value);
}

void ThreadMemory::write32(Slot slot, std::uint32_t value) {
  std::memcpy(host_ + static_cast<std::uint32_t>(slot), &value, sizeof value);
}

bool ThreadMemory::take_request() {
  void* slot = host_ + static_cast<std::uint32_t>(Slot::kRequest);
  auto asked = static_cast<std::uint64_t>(Request::kAsked);
  if (__atomic_load_n(static_cast<std::uint64_t*>(slot), __ATOMIC_ACQUIRE) != asked) return false;
  return __atomic_compare_exchange_n(static_cast<std::uint64_t*>(slot), &asked,
                                     static_cast<std::uint64_t>(Request::kTaken), false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void ThreadMemory::answer(TraceeAddr next) {
  write(Slot::kAnswer, next.value());
  set_request(Request::kAnswered);
}

void ThreadMemory::refuse() {
  set_request(Request::kRefused);
}

void ThreadMemory::drop_request() {
  set_request(Request::kNone);
}

void ThreadMemory::set_request(Request state) {
  void* slot = host_ + static_cast<std::uint32_t>(Slot::kRequest);
  __atomic_store_n(static_cast<std::uint64_t*>(slot), static_cast<std::uint64_t>(state),
                   __ATOMIC_RELEASE);
}

std::span<const std::uint32_t> ThreadMemory::entries(TraceeAddr log) const {
  if (!log_.holds(log)) return {};
  // A log begins at a page boundary and contains nothing but entries.
  const void* begin = log_.host;
  return {static_cast<const std::uint32_t*>(begin), (log - log_.begin) / sizeof(std::uint32_t)};
}

void ThreadMemory::blank_log() const {
  void* begin = log_.host;
  auto* entry = static_cast<std::uint32_t*>(begin);
  const auto* end = entry + log_.bytes() / sizeof *entry;
  for (; entry != end && *entry != kBlankEntry; ++entry) *entry = kBlankEntry;
}

std::span<const std::uint32_t> ThreadMemory::written(std::size_t known) const {
  const auto all = entries(log_.end);
  while (known < all.size() && __atomic_load_n(&all[known], __ATOMIC_ACQUIRE) != kBlankEntry) {
    ++known;
  }
  return all.first(known);
}

std::span<const std::uint64_t> ThreadMemory::values() const {
  const void* begin = host_ + translate::kValuesOffset;
  return {static_cast<const std::uint64_t*>(begin), translate::kRingValues};
}

}  // namespace backtrail::tracee::cache
