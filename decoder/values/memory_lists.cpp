// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/memory_lists.hpp"

#include <algorithm>

#include "arch/cpu/values.hpp"

namespace backtrail::decoder::values {

Granule& MemoryLists::add(std::uint64_t address, std::uint32_t access) {
  Granule& granule = granules_[address];
  granule.address = address;
  auto& list = granule.accesses;
  list.insert(std::lower_bound(list.begin(), list.end(), access), access);
  return granule;
}

const Granule* MemoryLists::find(std::uint64_t address) const {
  const auto found = granules_.find(address);
  return found == granules_.end() ? nullptr : &found->second;
}

std::uint64_t covered_bits(std::uint64_t granule, std::uint64_t address, unsigned size) {
  return to_granule(arch::cpu::values::low_bits(8 * size), granule, address);
}

std::uint64_t to_granule(std::uint64_t bits, std::uint64_t granule, std::uint64_t address) {
  if (address >= granule) {
    const std::uint64_t by = 8 * (address - granule);
    return by >= 64 ? 0 : bits << by;
  }
  const std::uint64_t by = 8 * (granule - address);
  return by >= 64 ? 0 : bits >> by;
}

std::uint64_t from_granule(std::uint64_t bits, std::uint64_t granule, std::uint64_t address) {
  return to_granule(bits, address, granule);
}

}  // namespace backtrail::decoder::values
