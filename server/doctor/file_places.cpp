// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/file_places.hpp"

#include <algorithm>

namespace backtrail::server {

FilePlaces::FilePlaces(std::span<const tracee::MapEntry> from,
                       std::span<const tracee::MapEntry> to) {
  for (const tracee::MapEntry& map : from) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const tracee::MapEntry& other) {
      return other.path == map.path && other.offset == map.offset && other.execute == map.execute &&
             other.end - other.start == map.end - map.start;
    });
    if (map.path.empty() || same == to.end()) continue;
    places_.push_back({.begin = map.start, .end = map.end, .distance = same->start - map.start});
  }
}

TraceeAddr FilePlaces::translated(TraceeAddr address) const {
  for (const auto& [begin, end, distance] : places_) {
    if (begin <= address.value() && address.value() < end) return address + distance;
  }
  return address;
}

void FilePlaces::translate(std::span<decoder::Record> records) const {
  for (decoder::Record& record : records) {
    record.from = translated(record.from);
    record.to = translated(record.to);
  }
}

}  // namespace backtrail::server
