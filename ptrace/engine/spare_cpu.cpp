// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/spare_cpu.hpp"

#include <optional>

#include <sched.h>
#include <sys/resource.h>

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kInterval{2};
constexpr std::chrono::milliseconds kAfterPreemption{50};

bool has_several_cpus() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 1;
}

/// Returns how often the calling thread was preempted; nullopt if the kernel does not tell.
std::optional<long> preemptions() {
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return std::nullopt;
  return usage.ru_nivcsw;
}

}  // namespace

SpareCpu::SpareCpu() : preemptions_{preemptions().value_or(0)} {}

bool SpareCpu::is_there() {
  if (const auto now = Clock::now(); now >= next_look_) look(now);
  return there_;
}

void SpareCpu::look(Clock::time_point now) {
  const std::optional<long> count = preemptions();
  const bool preempted = count && *count != preemptions_;
  preemptions_ = count.value_or(preemptions_);
  there_ = count && !preempted && has_several_cpus();
  next_look_ = now + (there_ ? kInterval : kAfterPreemption);
}

}  // namespace backtrail::tracee
