// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/spare_cpu.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <sched.h>

#include "ptrace/os/cpu_pin.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kInterval{2};
/// How long the thread tries another CPU. If it shares that one, too, it goes back.
constexpr std::chrono::milliseconds kTrial{1};
/// The pause doubles as long as the CPU is shared whenever it is looked at.
constexpr std::chrono::milliseconds kShortestPause{32};
constexpr std::chrono::milliseconds kLongestPause{256};
/// The thread shares its CPU if it waits longer than this part of the time in which it could run.
/// Stops and wake-ups make it wait a tenth of that on an idle machine, an equal thread half of it.
constexpr int kSharedPart = 5;

bool has_several(const cpu_set_t& cpus) {
  return CPU_COUNT(&cpus) > 1;
}

/// Makes the calling thread go to a CPU at once. It stays there as long as the kernel likes.
bool go_to(int cpu) {
  return CpuPin{0}.pin(cpu);
}

/// Makes the calling thread leave its CPU. Returns the CPU that it was on; nullopt if it may use no
/// other. The kernel often lets a thread and the one that it wakes share a CPU beside an idle one.
std::optional<int> leave_cpu() {
  const int left = ::sched_getcpu();
  const cpu_set_t allowed = CpuPin{0}.allowed();
  if (left < 0 || !has_several(allowed)) return std::nullopt;
  int other = left;
  do {
    other = (other + 1) % CPU_SETSIZE;
  } while (!CPU_ISSET(static_cast<std::size_t>(other), &allowed));
  return go_to(other) ? std::optional{left} : std::nullopt;
}

}  // namespace

SpareCpu::SpareCpu() : times_{own_times_.read().value_or(RunTimes{})}, pause_{kShortestPause} {}

bool SpareCpu::is_there() {
  if (const auto now = Clock::now(); now >= next_look_) look(now, own_times_.read());
  return there_;
}

void SpareCpu::look(Clock::time_point now, std::optional<RunTimes> times) {
  if (!times) {
    there_ = false;
    next_look_ = now + kLongestPause;
    return;
  }
  const RunTimes then = std::exchange(times_, *times);
  const auto waited = times->waited - then.waited;
  const bool shared = waited * kSharedPart > waited + (times->ran - then.ran);
  if (!shared) {
    left_.reset();
    // Stops leave both threads time: on one CPU neither waits, until one looks for requests.
    if (there_) pause_ = kShortestPause;
    there_ = has_several(CpuPin{0}.allowed());
    next_look_ = now + (there_ ? kInterval : kLongestPause);
    return;
  }
  if (left_) {
    (void)go_to(*left_);
    left_.reset();
  } else {
    left_ = leave_cpu();
  }
  there_ = left_.has_value();
  next_look_ = now + (there_ ? kTrial : pause_);
  if (!there_) pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
}

}  // namespace backtrail::tracee
