// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/thread_times.hpp"

#include <algorithm>
#include <utility>

#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

/// Returns the newest `most` elements.
template <typename T>
std::span<const T> last_of(const std::vector<T>& all, std::size_t most) {
  return std::span{all}.last(std::min(all.size(), most));
}

/// Places never decrease over time, so each pin narrows those before and after it.
void tighten(std::vector<TimePin>& pins) {
  std::uint64_t least = 0;
  for (TimePin& pin : pins) pin.earliest = least = std::max(least, pin.earliest);
  std::uint64_t most = ~std::uint64_t{0};
  for (std::size_t i = pins.size(); i-- > 0;) {
    pins[i].latest = most = std::min(most, pins[i].latest);
  }
  std::erase_if(pins, [](const TimePin& pin) { return pin.latest < pin.earliest; });
}

/// Adds differences and clears `good` on overflow.
class Sum {
 public:
  explicit Sum(bool& good) : good_{good} {}
  std::uint64_t operator()(std::uint64_t base, std::uint64_t more) {
    if (more > ~base) good_ = false;
    return base + more;
  }

 private:
  bool& good_;
};

bool read_pins(ByteReader& in, ThreadTimes& out) {
  bool good = true;
  Sum sum{good};
  const std::uint64_t count = in.varint();
  if (count > kMostTimePins || count > in.rest().size()) return false;
  std::uint64_t at = out.since_ns;
  std::uint64_t place = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    TimePin pin;
    pin.begin_ns = sum(at, in.varint());
    pin.end_ns = at = sum(pin.begin_ns, in.varint());
    pin.earliest = place = sum(place, in.varint());
    pin.latest = sum(place, in.varint());
    out.pins.push_back(pin);
  }
  return good && in.good();
}

bool read_off(ByteReader& in, ThreadTimes& out) {
  bool good = true;
  Sum sum{good};
  const std::uint64_t count = in.varint();
  if (count > kMostOffCpu || count > in.rest().size()) return false;
  std::uint64_t at = out.since_ns;
  for (std::uint64_t i = 0; i < count; ++i) {
    OffCpu off;
    const std::uint64_t gap = in.varint();
    off.begin_ns = sum(at, gap >> 1U);
    off.preempted = (gap & 1U) != 0;
    off.end_ns = at = sum(off.begin_ns, in.varint());
    out.off.push_back(off);
  }
  return good && in.good() && in.rest().empty();
}

}  // namespace

TraceTimes::TraceTimes(ThreadTimes times, std::uint64_t records)
    : times_{std::move(times)}, records_{records} {
  tighten(times_.pins);
}

PlaceRange TraceTimes::place_of(const OffCpu& off) const {
  PlaceRange out{0, records_};
  const auto& pins = times_.pins;
  // The thread stood still while it was off its CPU, so pins from that time show its place.
  const auto behind = std::partition_point(
      pins.begin(), pins.end(), [&](const TimePin& pin) { return pin.begin_ns <= off.end_ns; });
  if (behind != pins.begin()) out.earliest = std::prev(behind)->earliest;
  const auto first = std::partition_point(
      pins.begin(), pins.end(), [&](const TimePin& pin) { return pin.end_ns < off.begin_ns; });
  if (first != pins.end()) out.latest = std::min(out.latest, first->latest);
  out.latest = std::max(out.latest, out.earliest);
  return out;
}

TimeRange TraceTimes::time_of(std::uint64_t records) const {
  TimeRange out{times_.since_ns, times_.until_ns};
  const auto& pins = times_.pins;
  const auto passed = std::partition_point(
      pins.begin(), pins.end(), [&](const TimePin& pin) { return pin.latest <= records; });
  // If the thread stood still at that very place, the whole pin is its time.
  if (passed != pins.begin()) {
    const TimePin& pin = *std::prev(passed);
    out.earliest_ns = pin.earliest == records ? pin.begin_ns : pin.end_ns;
  }
  const auto ahead = std::partition_point(
      pins.begin(), pins.end(), [&](const TimePin& pin) { return pin.earliest <= records; });
  if (ahead != pins.end()) out.latest_ns = ahead->begin_ns;
  out.latest_ns = std::max(out.latest_ns, out.earliest_ns);
  return out;
}

void append_times(std::uint32_t tid, const ThreadTimes& times, std::vector<std::uint8_t>& out) {
  std::vector<TimePin> pins{times.pins};
  tighten(pins);
  ByteWriter raw;
  raw.varint(times.since_ns);
  raw.varint(times.until_ns - times.since_ns);
  raw.varint(times.lost);
  raw.varint(times.others);
  raw.varint(times.others_ns);
  const auto kept = last_of(pins, kMostTimePins);
  raw.varint(kept.size());
  std::uint64_t at = times.since_ns;
  std::uint64_t place = 0;
  for (const TimePin& pin : kept) {
    // A sample of a thread that is leaving its CPU may be a moment late.
    const std::uint64_t begin = std::max(pin.begin_ns, at);
    const std::uint64_t end = std::max(pin.end_ns, begin);
    raw.varint(begin - at);
    raw.varint(end - begin);
    raw.varint(pin.earliest - place);
    raw.varint(pin.latest - pin.earliest);
    at = end;
    place = pin.earliest;
  }
  const auto off = last_of(times.off, kMostOffCpu);
  raw.varint(off.size());
  at = times.since_ns;
  for (const OffCpu& each : off) {
    raw.varint((each.begin_ns - at) << 1U | (each.preempted ? 1U : 0U));
    raw.varint(each.length_ns());
    at = each.end_ns;
  }
  append_packed({.magic = kTimesMagic, .tid = tid, .records = kTimesVersion, .first = 0},
                raw.bytes(), out);
}

Result<ThreadTimes> decode_times(const TraceBlock& block) {
  if (block.records != kTimesVersion) {
    return fail(TraceErrc::kMalformed, "times of another version", block.records);
  }
  BT_TRY(const auto raw, unpack_block(block));
  ByteReader in{raw};
  ThreadTimes out;
  out.since_ns = in.varint();
  const std::uint64_t length = in.varint();
  out.until_ns = out.since_ns + length;
  out.lost = in.varint();
  out.others = in.varint();
  out.others_ns = in.varint();
  if (!in.good() || length > ~out.since_ns || !read_pins(in, out) || !read_off(in, out)) {
    return fail(TraceErrc::kMalformed, "read the times of a thread", block.tid);
  }
  return out;
}

}  // namespace backtrail::decoder
