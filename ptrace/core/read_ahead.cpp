// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/read_ahead.hpp"

#include <numeric>
#include <utility>

#include "arch/base/check.hpp"

namespace backtrail::tracee {
namespace {

std::size_t bytes_of(std::span<const MemoryPart> parts) {
  return std::accumulate(parts.begin(), parts.end(), std::size_t{0},
                         [](std::size_t sum, const MemoryPart& part) { return sum + part.bytes; });
}

}  // namespace

ReadAhead::ReadAhead(std::vector<MemoryPart> parts, Fill fill)
    : parts_{std::move(parts)}, fill_{std::move(fill)} {}

std::span<const MemoryPart> ReadAhead::take_parts() {
  const std::size_t first = taken_;
  for (std::size_t bytes = 0; taken_ < parts_.size(); ++taken_) {
    BT_CHECK(parts_[taken_].bytes <= kBatchBytes);
    bytes += parts_[taken_].bytes;
    if (bytes > kBatchBytes) break;
  }
  return std::span{parts_}.subspan(first, taken_ - first);
}

ReadAhead::Batch ReadAhead::read(std::size_t first, std::span<const MemoryPart> parts,
                                 std::vector<std::uint8_t> memory) const {
  Batch batch{.first = first, .count = parts.size(), .bytes = std::move(memory)};
  batch.bytes.resize(bytes_of(parts));
  batch.unreadable_bytes = fill_(parts, batch.bytes);
  return batch;
}

const ReadAhead::Batch* ReadAhead::next() {
  // Fewer bytes are read faster than a thread starts.
  constexpr std::size_t kWorthAThread = std::size_t{256} << 10U;
  spare_ = std::exchange(current_.bytes, {});
  if (coming_.valid()) {
    current_ = coming_.get();
  } else {
    const std::size_t first = taken_;
    const auto parts = take_parts();
    if (parts.empty()) return nullptr;
    current_ = read(first, parts, std::move(spare_));
  }
  const std::size_t first = taken_;
  const auto parts = take_parts();
  if (parts.empty()) return &current_;
  // Runs deferred if no thread can be created.
  const auto when = bytes_of(parts) < kWorthAThread ? std::launch::deferred
                                                    : std::launch::async | std::launch::deferred;
  coming_ = std::async(when, [this, first, parts, memory = std::move(spare_)]() mutable {
    return read(first, parts, std::move(memory));
  });
  return &current_;
}

}  // namespace backtrail::tracee
