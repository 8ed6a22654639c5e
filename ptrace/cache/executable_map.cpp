#include "ptrace/cache/executable_map.hpp"

#include <algorithm>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

Result<ExecutableMap> ExecutableMap::read(pid_t pid) {
  BT_TRY(const std::vector<MapEntry> maps, ProcFs{}.maps(pid));
  ExecutableMap result;
  for (const MapEntry& map : maps) {
    if (map.execute) {
      result.everything_.emplace_back(TraceeAddr{map.start}, TraceeAddr{map.end});
    }
    if (!map.execute || !map.read || map.write || map.shared) continue;
    result.ranges_.push_back(
        {TraceeAddr{map.start}, TraceeAddr{map.end}, map.offset, map.inode, map.path});
  }
  return result;
}

bool ExecutableMap::contains(TraceeAddr address) const {
  return overlaps(address, address + 1);
}

bool ExecutableMap::overlaps(TraceeAddr begin, TraceeAddr end) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [=](const Range& range) { return begin < range.end && range.begin < end; });
}

bool ExecutableMap::kept_by(const ExecutableMap& newer) const {
  return std::all_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return std::find(newer.ranges_.begin(), newer.ranges_.end(), range) != newer.ranges_.end();
  });
}

}  // namespace backtrail::tracee::cache
