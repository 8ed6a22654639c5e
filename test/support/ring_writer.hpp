// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes perf's records as the kernel does, for tests of their readers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/bytes.hpp"
#include "decoder/perf/perf_abi.hpp"

namespace backtrail::test {

/// Makes a record of a header and 64-bit numbers.
inline std::vector<std::uint8_t> perf_record(decoder::perf::RecordType type, std::uint16_t misc,
                                             std::span<const std::uint64_t> words) {
  std::vector<std::uint8_t> out(8 + words.size() * 8);
  store_le(out.data(), static_cast<std::uint32_t>(type));
  store_le(out.data() + 4, misc);
  store_le(out.data() + 6, static_cast<std::uint16_t>(out.size()));
  for (std::size_t i = 0; i < words.size(); ++i) store_le(out.data() + 8 + i * 8, words[i]);
  return out;
}
inline std::vector<std::uint8_t> perf_record(decoder::perf::RecordType type, std::uint16_t misc,
                                             std::initializer_list<std::uint64_t> words) {
  return perf_record(type, misc, std::span{words.begin(), words.size()});
}

/// Copies bytes into a ring at a position, in parts if they wrap around.
inline void put_at(std::span<std::uint8_t> ring, std::uint64_t position,
                   std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const std::size_t at = position % ring.size();
    const std::size_t part = std::min(bytes.size(), ring.size() - at);
    std::copy_n(bytes.begin(), part, ring.begin() + static_cast<std::ptrdiff_t>(at));
    bytes = bytes.subspan(part);
    position += part;
  }
}

}  // namespace backtrail::test
