// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/executable_map.hpp"

#include <algorithm>

#include <sys/sysmacros.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Returns true if the two ranges are the same memory where they overlap.
bool same_kind(const ExecutableMap::Range& a, const ExecutableMap::Range& b) {
  if (a.inode != b.inode || a.path != b.path || a.may_change != b.may_change) return false;
  return a.inode == 0 || a.offset - a.begin.value() == b.offset - b.begin.value();
}

/// Returns true for anonymous memory or a file's: memory that holds no signal frames and no
/// allocator's data.
bool is_own(const MapEntry& map) {
  return !map.shared && (map.inode != 0 || map.path.empty() || map.path.starts_with("[anon:"));
}

/// Returns true if the two mappings can be treated as one.
bool continues(const MapEntry& before, const MapEntry& map) {
  const bool same_file = before.path == map.path && before.inode == map.inode &&
                         before.device_major == map.device_major &&
                         before.device_minor == map.device_minor;
  const bool goes_on = map.inode == 0 || before.offset + (before.end - before.start) == map.offset;
  return before.end == map.start && is_own(before) && is_own(map) && same_file && goes_on &&
         before.read == map.read && before.write == map.write && before.execute == map.execute;
}

/// Returns true if `map` follows a mapping of the same file, and neither is data that the program
/// writes.
bool is_around(const MapEntry& before, const MapEntry& map) {
  const auto is_part = [](const MapEntry& one) {
    return one.inode != 0 && !one.shared && (one.execute || (one.read && !one.write));
  };
  return before.end == map.start && is_part(before) && is_part(map) && before.path == map.path &&
         before.inode == map.inode && before.device_major == map.device_major &&
         before.device_minor == map.device_minor;
}

void append(std::vector<MapEntry>& maps, MapEntry map) {
  if (map.start == map.end) return;
  if (!maps.empty() && continues(maps.back(), map)) {
    maps.back().end = map.end;
  } else {
    maps.push_back(std::move(map));
  }
}

MapEntry part(MapEntry map, std::uint64_t begin, std::uint64_t end) {
  if (map.inode != 0) map.offset += begin - map.start;
  map.start = begin;
  map.end = end;
  return map;
}

/// Returns the mappings as they would be without write-protected code pages.
std::vector<MapEntry> as_made(const std::vector<MapEntry>& maps,
                              const ProtectedPages& protected_pages) {
  std::vector<MapEntry> result;
  for (const MapEntry& map : maps) {
    std::uint64_t from = map.start;
    for (const auto& [begin, end] :
         protected_pages.within(TraceeAddr{map.start}, TraceeAddr{map.end})) {
      append(result, part(map, from, begin.value()));
      MapEntry written = part(map, begin.value(), end.value());
      written.write = true;
      append(result, std::move(written));
      from = end.value();
    }
    append(result, part(map, from, map.end));
  }
  return result;
}

}  // namespace

ExecutableMap ExecutableMap::from(const std::vector<MapEntry>& maps, TraceeAddr ours,
                                  const ProtectedPages& protected_pages,
                                  const MayChange& may_change, const ExecutableMap* older) {
  ExecutableMap result;
  const std::vector<MapEntry> made =
      protected_pages.empty() ? maps : as_made(maps, protected_pages);
  for (const MapEntry& map : made) {
    if (!map.execute || !map.read || map.start == ours.value()) continue;
    const bool is_written_elsewhere = !map.shared && may_change(map);
    const bool is_written_here = map.write && is_own(map);
    result.ranges_.push_back({TraceeAddr{map.start}, TraceeAddr{map.end}, map.offset,
                              makedev(map.device_major, map.device_minor), map.inode, map.path,
                              map.write || map.shared || is_written_elsewhere,
                              is_written_here && !is_written_elsewhere,
                              is_written_here && is_written_elsewhere && map.inode != 0});
  }
  for (std::size_t i = 0; i < made.size();) {
    std::size_t end = i + 1;
    while (end < made.size() && is_around(made[end - 1], made[end])) ++end;
    const auto image = std::span{made}.subspan(i, end - i);
    if (std::ranges::any_of(image, &MapEntry::execute)) {
      const MapEntry* const next = end < made.size() ? &made[end] : nullptr;
      result.add_image(result.without_growing(image, next, older));
    }
    i = end;
  }
  return result;
}

/// A dynamic linker maps a whole file read-only, then code, and the data last.
std::span<const MapEntry> ExecutableMap::without_growing(std::span<const MapEntry> image,
                                                         const MapEntry* next,
                                                         const ExecutableMap* older) {
  const MapEntry& last = image.back();
  const bool has_data = next != nullptr && next->start == last.end && next->write &&
                        next->inode == last.inode && next->path == last.path;
  const auto code = std::ranges::find_if(image.rbegin(), image.rend(), &MapEntry::execute).base();
  if (has_data || code == image.end()) return image;
  const Part tail{TraceeAddr{code->start}, TraceeAddr{last.end}};
  if (older != nullptr &&
      std::ranges::find(older->everything_, Part{TraceeAddr{image.front().start}, tail.second}) !=
          older->everything_.end()) {
    return image;
  }
  if (older != nullptr && std::ranges::find(older->growing_, tail) != older->growing_.end()) {
    return image;
  }
  growing_.push_back(tail);
  return image.first(static_cast<std::size_t>(code - image.begin()));
}

/// Adds mappings of one file, each at the end of the one before, some of them executable.
void ExecutableMap::add_image(std::span<const MapEntry> maps) {
  const TraceeAddr begin{maps.front().start};
  const TraceeAddr end{maps.back().end};
  everything_.emplace_back(begin, end);
  const bool is_written_elsewhere = std::ranges::any_of(ranges_, [&](const Range& range) {
    return range.begin < end && begin < range.end && range.may_change && !range.own;
  });
  if (is_written_elsewhere) return;
  for (const MapEntry& map : maps) {
    const bool is_of_file = map.inode != 0 || map.path == kVdso;
    if (!map.read || map.write || map.shared || !is_of_file) continue;
    if (!constant_.empty() && constant_.back().second.value() == map.start) {
      constant_.back().second = TraceeAddr{map.end};
    } else {
      constant_.emplace_back(TraceeAddr{map.start}, TraceeAddr{map.end});
    }
  }
}

const ExecutableMap::Range* ExecutableMap::find(TraceeAddr address) const {
  // One function follows the other: most addresses are near the last one.
  if (last_ < ranges_.size() && ranges_[last_].begin <= address && address < ranges_[last_].end) {
    return &ranges_[last_];
  }
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](TraceeAddr value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin()) return nullptr;
  const Range& range = *std::prev(after);
  if (address >= range.end) return nullptr;
  last_ = static_cast<std::size_t>(&range - ranges_.data());
  return &range;
}

bool ExecutableMap::overlaps(TraceeAddr begin, TraceeAddr end) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [=](const Range& range) { return begin < range.end && range.begin < end; });
}

bool ExecutableMap::knows_file_of(const MapEntry& mapping) const {
  return std::ranges::any_of(ranges_, [&](const Range& range) {
    return range.inode == mapping.inode && range.path == mapping.path && !range.may_change;
  });
}

MapEntry ExecutableMap::Range::file() const {
  MapEntry mapping;
  mapping.inode = inode;
  mapping.path = path;
  return mapping;
}

std::vector<std::pair<TraceeAddr, TraceeAddr>> ExecutableMap::lost_in(
    const ExecutableMap& newer) const {
  std::vector<std::pair<TraceeAddr, TraceeAddr>> lost;
  for (const Range& old : ranges_) {
    TraceeAddr from = old.begin;
    for (const Range& now : newer.ranges_) {
      if (now.end <= from || now.begin >= old.end || !same_kind(old, now)) continue;
      if (now.begin > from) lost.emplace_back(from, now.begin);
      from = std::min(now.end, old.end);
    }
    if (from < old.end) lost.emplace_back(from, old.end);
  }
  return lost;
}

}  // namespace backtrail::tracee::cache
