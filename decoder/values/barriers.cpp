// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/barriers.hpp"

#include <algorithm>

namespace backtrail::decoder::values {

std::uint32_t IndexSet::next_in(const Words& words, std::size_t i) {
  std::size_t word = i / 64;
  if (word >= words.size()) return kNone;
  std::uint64_t bits = words[word] & ~std::uint64_t{0} << (i % 64);
  while (bits == 0) {
    if (++word == words.size()) return kNone;
    bits = words[word];
  }
  return static_cast<std::uint32_t>(word * 64 + static_cast<unsigned>(std::countr_zero(bits)));
}

std::uint32_t IndexSet::previous_in(const Words& words, std::size_t i) {
  std::size_t word = i / 64;
  std::uint64_t bits = words[word] & (bit(i) - 1);
  while (bits == 0) {
    if (word-- == 0) return kNone;
    bits = words[word];
  }
  return static_cast<std::uint32_t>(word * 64 + 63 - static_cast<unsigned>(std::countl_zero(bits)));
}

std::uint32_t IndexSet::next(std::uint32_t i) const {
  const std::size_t word = i / 64;
  if (word >= words_.size()) return kNone;
  if ((words_[word] & ~std::uint64_t{0} << (i % 64)) != 0) return next_in(words_, i);
  const std::uint32_t used = next_in(used_, word + 1);
  return used == kNone ? kNone : next_in(words_, std::size_t{used} * 64);
}

std::uint32_t IndexSet::previous(std::uint32_t i) const {
  const std::size_t word = i / 64;
  if ((words_[word] & (bit(i) - 1)) != 0) return previous_in(words_, i);
  const std::uint32_t used = previous_in(used_, word);
  return used == kNone ? kNone
                       : used * 64 + 63 - static_cast<unsigned>(std::countl_zero(words_[used]));
}

void Barriers::bound(std::uint32_t access, std::uint64_t low, std::uint64_t high) {
  full_.erase(access);
  bounded_.insert(access);
  bounds_[access] = {low, high};
}

void Barriers::remove(std::uint32_t access) {
  full_.erase(access);
  bounded_.erase(access);
}

bool Barriers::within(std::uint32_t access, std::uint64_t low, std::uint64_t high) const {
  const auto found = bounds_.find(access);
  return found != bounds_.end() && found->second.low >= low && found->second.high <= high;
}

bool Barriers::touches(std::uint32_t access, std::uint64_t granule) const {
  const Bounds& bounds = bounds_.at(access);
  return bounds.low <= granule + 7 && bounds.high >= granule;
}

std::uint32_t Barriers::next(std::uint32_t access, std::uint64_t granule) const {
  const std::uint32_t full = full_.next(access);
  unsigned seen = 0;
  for (std::uint32_t i = bounded_.next(access); i < full; i = bounded_.next(i + 1)) {
    if (touches(i, granule) || ++seen == kPatience) return i;
  }
  return full;
}

std::uint32_t Barriers::previous(std::uint32_t access, std::uint64_t granule) const {
  const std::uint32_t full = full_.previous(access);
  unsigned seen = 0;
  for (std::uint32_t i = bounded_.previous(access); i != kNone && (full == kNone || i > full);
       i = bounded_.previous(i)) {
    if (touches(i, granule) || ++seen == kPatience) return i;
  }
  return full;
}

}  // namespace backtrail::decoder::values
