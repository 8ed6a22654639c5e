// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/off_marks.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace backtrail::decoder {

std::vector<OffMark> off_marks(const TraceTimes& times, std::uint64_t first, std::uint64_t records,
                               std::uint64_t shortest_ns) {
  constexpr std::size_t kMost = 4096;
  std::vector<OffMark> out;
  const auto& all = times.times().off;
  for (auto off = all.rbegin(); off != all.rend() && out.size() < kMost; ++off) {
    const PlaceRange place = times.place_of(*off);
    if (off->length_ns() < shortest_ns || place.width() != 0) continue;
    if (place.earliest < first) break;
    if (place.earliest - first > records) continue;
    out.push_back({.position = place.earliest - first,
                   .ns = off->length_ns(),
                   .before_end_ns = times.times().until_ns - off->end_ns,
                   .preempted = off->preempted});
  }
  std::reverse(out.begin(), out.end());
  return out;
}

OffSums off_sums(const ThreadTimes& times) {
  OffSums out;
  out.known_ns = times.until_ns - times.since_ns;
  out.others = times.others;
  out.others_ns = times.others_ns;
  out.lost = times.lost;
  for (const OffCpu& off : times.off) {
    ++(off.preempted ? out.preemptions : out.waits);
    (off.preempted ? out.preempted_ns : out.waited_ns) += off.length_ns();
  }
  return out;
}

std::string duration_text(std::uint64_t ns) {
  struct Unit {
    std::uint64_t ns;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};
  for (const Unit& unit : kUnits) {
    if (ns < unit.ns) continue;
    const double count = static_cast<double>(ns) / static_cast<double>(unit.ns);
    return fmt::format("{:.{}f} {}", count, count < 9.95 ? 1 : 0, unit.name);
  }
  return fmt::format("{} ns", ns);
}

}  // namespace backtrail::decoder
