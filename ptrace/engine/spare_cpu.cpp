// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/spare_cpu.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <sched.h>

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

cpu_set_t allowed_cpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

/// Makes the calling thread go to one of `cpus` at once. It stays there as long as the kernel
/// likes.
bool go_to(const cpu_set_t& cpus) {
  const cpu_set_t allowed = allowed_cpus();
  return ::sched_setaffinity(0, sizeof cpus, &cpus) == 0 &&
         ::sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

/// Makes the calling thread leave its CPU. Returns the CPU that it was on; nullopt if it may use no
/// other. The kernel often lets a thread and the one that it wakes share a CPU beside an idle one.
std::optional<std::size_t> leave_cpu() {
  const int cpu = ::sched_getcpu();
  if (cpu < 0) return std::nullopt;
  const auto left = static_cast<std::size_t>(cpu);
  cpu_set_t others = allowed_cpus();
  CPU_CLR(left, &others);
  if (CPU_COUNT(&others) == 0 || !go_to(others)) return std::nullopt;
  return left;
}

void return_to(std::size_t cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  (void)go_to(one);
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
    const cpu_set_t allowed = allowed_cpus();
    there_ = CPU_COUNT(&allowed) > 1;
    next_look_ = now + (there_ ? kInterval : kLongestPause);
    return;
  }
  if (left_) {
    return_to(*left_);
    left_.reset();
  } else {
    left_ = leave_cpu();
  }
  there_ = left_.has_value();
  next_look_ = now + (there_ ? kTrial : pause_);
  if (!there_) pause_ = std::min<Clock::duration>(2 * pause_, kLongestPause);
}

}  // namespace backtrail::tracee
