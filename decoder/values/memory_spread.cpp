// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/memory_spread.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::decoder::values {

using cpu::AccessKind;

void MemorySpread::take(std::uint32_t access, std::uint64_t granule, Known what,
                        std::uint64_t bits) {
  const Access& a = graph_.accesses[access];
  const std::uint64_t own = cpu::low_bits(8U * a.size);
  const std::uint64_t mask = from_granule(what.mask & bits, granule, memory_.address(access)) & own;
  if (mask == 0) return;
  queue_.learn(a.value, from_granule(what.value & bits, granule, memory_.address(access)) & mask,
               mask);
}

void MemorySpread::take_constant(std::uint32_t access) {
  for (const WindowMemory::Part& part : memory_.parts(access)) {
    if (part.bits != 0) {
      take(access, part.granule, memory_.final_content(part.granule), part.bits);
    }
  }
}

void MemorySpread::exchange(std::uint32_t one, std::uint32_t other, std::uint64_t granule,
                            std::uint64_t bits) {
  const Known of_one = memory_.content(one, granule);
  const Known of_other = memory_.content(other, granule);
  take(one, granule, of_other, bits);
  take(other, granule, of_one, bits);
}

void MemorySpread::spread(std::uint32_t access) {
  for (const WindowMemory::Part& part : memory_.parts(access)) {
    if (part.bits == 0) continue;
    forwards(access, part.granule);
    if (graph_.accesses[access].kind == AccessKind::kLoad) {
      backwards(access, part.granule);
    }
  }
}

/// Forward: bytes keep the contents that the access left until the next store or barrier.
void MemorySpread::forwards(std::uint32_t access, std::uint64_t granule) {
  const auto& list = memory_.lists().find(granule)->accesses;
  std::uint64_t alive =
      covered_bits(granule, memory_.address(access), graph_.accesses[access].size);
  const std::uint32_t barrier = memory_.barriers().next(access + 1, granule);
  for (auto at = std::upper_bound(list.begin(), list.end(), access); at != list.end(); ++at) {
    if (*at > barrier) return;
    const Access& other = graph_.accesses[*at];
    const std::uint64_t common = alive & covered_bits(granule, memory_.address(*at), other.size);
    if (common == 0) continue;
    if (other.kind == AccessKind::kLoad) exchange(access, *at, granule, common);
    alive &= ~common;
    if (alive == 0) return;
  }
  const Known last = memory_.final_content(granule);
  if (barrier != Barriers::kNone) {
    alive &= memory_.survivors(barrier, Barriers::kNone, granule, last);
  }
  take(access, granule, last, alive);
}

/// Backward: before a load, bytes had the contents known from the last store or load before it.
void MemorySpread::backwards(std::uint32_t access, std::uint64_t granule) {
  const auto& list = memory_.lists().find(granule)->accesses;
  std::uint64_t alive =
      covered_bits(granule, memory_.address(access), graph_.accesses[access].size);
  const std::uint32_t barrier = memory_.barriers().previous(access, granule);
  bool is_before = false;
  const auto take_fill = [&] {
    if (std::exchange(is_before, true) || barrier == Barriers::kNone) return;
    take(access, granule, memory_.filled(barrier, granule), alive);
  };
  for (auto at = std::lower_bound(list.begin(), list.end(), access); at != list.begin();) {
    --at;
    if (barrier != Barriers::kNone && *at < barrier) take_fill();
    const std::uint64_t common =
        alive & covered_bits(granule, memory_.address(*at), graph_.accesses[*at].size);
    if (common == 0) continue;
    if (barrier == Barriers::kNone || *at > barrier) {
      exchange(access, *at, granule, common);
    } else {
      const Known later = memory_.content(access, granule);
      take(*at, granule, later, common & memory_.survivors(*at + 1, access, granule, later));
    }
    alive &= ~common;
    if (alive == 0) return;
  }
  take_fill();
}

void MemorySpread::spread_fill(std::uint32_t access) {
  // Loads that are placed later find the fill themselves.
  constexpr std::uint64_t kMostBytes = 0x8000;
  const Access& fill = graph_.accesses[access];
  const std::uint64_t begin = memory_.address(access);
  const std::uint64_t bytes = std::min(graph_.known[fill.value].value, kMostBytes);
  for (std::uint64_t granule = begin & ~std::uint64_t{7}; granule < begin + bytes; granule += 8) {
    const Granule* found = memory_.lists().find(granule);
    if (found == nullptr) continue;
    const auto& list = found->accesses;
    for (auto at = std::upper_bound(list.begin(), list.end(), access); at != list.end(); ++at) {
      if (graph_.accesses[*at].kind != AccessKind::kLoad) break;
      queue_.enqueue(ValueQueue::Kind::kAccess, *at);
    }
  }
}

}  // namespace backtrail::decoder::values
