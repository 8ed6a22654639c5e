// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/busy_log.hpp"

#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee::cache {
namespace {

/// If less is left, the next segment is begun, because a full log costs a stop.
constexpr std::uint64_t kLeastRest = 16ULL << 10;
/// A smaller history is cheap to copy.
constexpr std::uint64_t kLeastHistory = 2 * kLogBytes;

}  // namespace

Result<std::unique_ptr<BusyLog>> BusyLog::begin(CacheSpace& space, Thread& thread,
                                                std::uint64_t history_bytes) {
  // Each segment may end with an unused rest, and one of them is being written.
  constexpr std::uint64_t kHeld = kSegmentBytes - kLeastRest;
  const std::uint64_t segments = (history_bytes + kHeld - 1) / kHeld + 1;
  if (history_bytes < kLeastHistory || segments > kAreaSegments) {
    return fail(TraceErrc::kBusy, "use a large log", history_bytes);
  }
  BT_TRY(const std::size_t area, space.threads().take_area(thread));
  space.memory().commit_segment(thread, area, 0);
  return std::unique_ptr<BusyLog>{new BusyLog{space, area, static_cast<std::size_t>(segments)}};
}

BusyLog::BusyLog(CacheSpace& space, std::size_t area, std::size_t segments)
    : space_{space}, area_{area}, segments_{segments}, rest_{space.memory().segment(area, 0)} {}

BusyLog::~BusyLog() {
  space_.threads().give_area_back(area_);
}

bool BusyLog::use_up(TraceeAddr log) {
  if (!rest_.holds(log)) return false;
  rest_.host += log - rest_.begin;
  rest_.begin = log;
  if (rest_.bytes() >= kLeastRest) return false;
  now_ = (now_ + 1) % segments_;
  rest_ = space_.memory().segment(area_, now_);
  return true;
}

void BusyLog::commit(Thread& thread) const {
  space_.memory().commit_segment(thread, area_, now_);
}

bool BusyLog::prepare_next() const {
  return space_.memory().prepare_segment(area_, (now_ + 1) % segments_);
}

}  // namespace backtrail::tracee::cache
