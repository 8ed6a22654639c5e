// SPDX-License-Identifier: Apache-2.0
#include "server/target/past_watches.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::server {

void PastWatches::insert(TraceeAddr address, std::uint64_t length) {
  const Watch watch{address, length};
  if (std::ranges::find(watches_, watch) == watches_.end()) watches_.push_back(watch);
}

void PastWatches::remove(TraceeAddr address, std::uint64_t length) {
  std::erase(watches_, Watch{address, length});
}

PastWatches::State PastWatches::state(const Read& read) const {
  State out;
  out.reserve(watches_.size());
  for (const Watch& watch : watches_) {
    std::vector<std::uint8_t> bytes(watch.length);
    const bool known = read(watch.address, bytes) == bytes.size();
    out.push_back(known ? std::optional{std::move(bytes)} : std::nullopt);
  }
  return out;
}

std::optional<PastWatches::Change> PastWatches::change(const State& one, const State& other) const {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if (one[i] == other[i]) continue;
    return Change{watches_[i].address, one[i].has_value() && other[i].has_value()};
  }
  return std::nullopt;
}

std::optional<TraceeAddr> PastWatches::unknown(const State& one, const State& other) const {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if (!one[i] && !other[i]) return watches_[i].address;
  }
  return std::nullopt;
}

}  // namespace backtrail::server
