// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/data_ring.hpp"

#include <algorithm>
#include <array>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder::perf {
namespace {

struct Header {
  RecordType type;
  std::uint16_t misc;
  std::uint16_t size;
};

Header read_header(const std::uint8_t* at) {
  return {static_cast<RecordType>(load_le<std::uint32_t>(at)), load_le<std::uint16_t>(at + 4),
          load_le<std::uint16_t>(at + 6)};
}

/// Returns true if `size` covers a header and is a whole number of words.
bool plausible(std::uint16_t size) {
  return size >= kHeaderBytes && size % 8 == 0;
}

}  // namespace

void DataRing::copy(std::uint64_t position, std::span<std::uint8_t> out) const {
  const std::uint64_t at = position & (bytes_.size() - 1);
  const std::size_t front = std::min<std::size_t>(out.size(), bytes_.size() - at);
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), front, out.begin());
  std::copy_n(bytes_.begin(), out.size() - front, out.begin() + static_cast<std::ptrdiff_t>(front));
}

RingWalk DataRing::visit(std::uint64_t tail, std::uint64_t head,
                         const std::function<void(const RecordView&)>& visitor) {
  if (head - tail > bytes_.size() || tail % 8 != 0) return {tail, true};
  while (head - tail >= kHeaderBytes) {
    const std::uint64_t at = tail & (bytes_.size() - 1);
    // Positions are multiples of 8, so a header is never split.
    const Header header = read_header(bytes_.data() + at);
    if (!plausible(header.size) || header.size > head - tail) return {tail, true};
    std::span<const std::uint8_t> record;
    if (at + header.size <= bytes_.size()) {
      record = bytes_.subspan(at, header.size);
    } else {
      scratch_.resize(header.size);
      copy(tail, scratch_);
      record = scratch_;
    }
    visitor({header.type, header.misc, record.subspan(kHeaderBytes)});
    tail += header.size;
  }
  return {tail, tail != head};
}

RingWalk walk_records(std::span<const std::uint8_t> bytes,
                      const std::function<void(const RecordView&)>& visitor) {
  std::size_t at = 0;
  while (bytes.size() - at >= kHeaderBytes) {
    const Header header = read_header(bytes.data() + at);
    if (!plausible(header.size) || header.size > bytes.size() - at) return {at, true};
    visitor(
        {header.type, header.misc, bytes.subspan(at + kHeaderBytes, header.size - kHeaderBytes)});
    at += header.size;
  }
  return {at, at != bytes.size()};
}

}  // namespace backtrail::decoder::perf
