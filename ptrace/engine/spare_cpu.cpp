// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/spare_cpu.hpp"

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

}  // namespace

bool SpareCpu::is_there() {
  if (const auto now = Clock::now(); now >= next_look_) look(now);
  return there_;
}

void SpareCpu::look(Clock::time_point now) {
  rusage usage{};
  const bool told = ::getrusage(RUSAGE_THREAD, &usage) == 0;
  const bool preempted = usage.ru_nivcsw != preemptions_;
  preemptions_ = usage.ru_nivcsw;
  there_ = told && !preempted && has_several_cpus();
  next_look_ = now + (there_ ? kInterval : kAfterPreemption);
}

}  // namespace backtrail::tracee
