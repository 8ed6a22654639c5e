// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/value_log.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {

using arch::cpu::translate::Slot;

ValueLog::ValueLog(ThreadMemory& memory, const ValueRanges& ranges)
    : memory_{memory}, ranges_{ranges}, taken_{ranges.front().begin} {
  memory_.write(Slot::kValues, taken_.value());
}

TraceeAddr ValueLog::next() const {
  return TraceeAddr{memory_.read(Slot::kValues)};
}

void ValueLog::count(std::size_t values) {
  memory_.write(Slot::kValues, (next() + values * sizeof(std::uint64_t)).value());
}

void ValueLog::take(decoder::ValueStream& values) {
  const TraceeAddr to = next();
  values.hold(ranges_.at(now_).between(taken_, to));
  taken_ = to;
}

TraceeAddr ValueLog::go_on(decoder::ValueStream& values) {
  take(values);
  const auto unfinished = ranges_.at(now_).between(taken_, end());
  now_ = (now_ + 1) % ranges_.size();
  const ValueRange& range = ranges_.at(now_);
  values.forget(range.all());
  std::copy(unfinished.begin(), unfinished.end(), range.host);
  taken_ = range.begin;
  memory_.write(Slot::kValues, taken_.value());
  return taken_;
}

}  // namespace backtrail::tracee::cache
