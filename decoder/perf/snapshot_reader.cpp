// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/snapshot_reader.hpp"

#include <algorithm>

#include "decoder/perf/aux_area.hpp"

namespace backtrail::decoder::perf {

SnapshotNews SnapshotReader::look(std::span<const std::uint8_t> area, std::uint64_t head) {
  area = area.first(area.size() / unit_ * unit_);
  head = std::min<std::uint64_t>(head / unit_ * unit_, area.size());
  if (seen_.size() != area.size()) seen_.assign(area.size(), 0);
  const auto same = [&](std::uint64_t begin, std::uint64_t end) {
    return std::equal(area.begin() + static_cast<std::ptrdiff_t>(begin),
                      area.begin() + static_cast<std::ptrdiff_t>(end),
                      seen_.begin() + static_cast<std::ptrdiff_t>(begin));
  };
  SnapshotNews news;
  const auto take = [&](std::uint64_t begin, std::uint64_t end) {
    const auto part = area.subspan(begin, end - begin);
    news.bytes.insert(news.bytes.end(), part.begin(), part.end());
  };
  const bool ahead = head >= head_;
  // These bytes are unchanged if the writer went round less than once.
  const bool untouched = ahead ? same(0, head_) && same(head, area.size()) : same(head, head_);
  if (untouched && ahead) {
    take(head_, head);
  } else if (untouched) {
    take(head_, area.size());
    take(0, head);
    wrapped_ = true;
  } else {
    wrapped_ = true;
    news.lost = true;
    news.bytes = copy_snapshot(area, head, unit_, true);
  }
  seen_.assign(area.begin(), area.end());
  head_ = head;
  return news;
}

}  // namespace backtrail::decoder::perf
