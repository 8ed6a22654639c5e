// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/code_links.hpp"

#include <cstring>

namespace backtrail::tracee::cache {

std::uint32_t CodeLinks::distance_to(std::uint64_t link, TraceeAddr target) const {
  return static_cast<std::uint32_t>(target - address_of(link + kBytes));
}

std::uint64_t CodeLinks::target_of(std::uint64_t link) const {
  const auto distance = static_cast<std::int32_t>(load(link));
  return link + kBytes + static_cast<std::uint64_t>(std::int64_t{distance});
}

void CodeLinks::point(std::uint64_t link, TraceeAddr target) {
  store(link, distance_to(link, target));
}

std::uint32_t CodeLinks::load(std::uint64_t offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, host_.subspan(offset).data(), sizeof value);
  return value;
}

void CodeLinks::store(std::uint64_t offset, std::uint32_t value) {
  // The place may be unaligned, but lies within one cache line: the CPU stores it at once.
  void* place = host_.subspan(offset).data();
  __atomic_store_n(static_cast<std::uint32_t*>(place), value, __ATOMIC_RELEASE);
  if (offset < noted_end_ && changes_.size() <= kMostChanges) {
    changes_.push_back(static_cast<std::uint32_t>(offset));
  }
}

std::optional<std::vector<std::uint32_t>> CodeLinks::changes() const {
  if (changes_.size() > kMostChanges) return std::nullopt;
  return changes_;
}

}  // namespace backtrail::tracee::cache
