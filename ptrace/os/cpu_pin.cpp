// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/cpu_pin.hpp"

#include <cstddef>

namespace backtrail::tracee {
namespace {

cpu_set_t only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

cpu_set_t present_of(pid_t tid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(tid, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

}  // namespace

cpu_set_t CpuPin::allowed() const {
  return active() ? original_ : present_of(tid_);
}

bool CpuPin::pin(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  if (active() && cpu == cpu_) return true;
  const cpu_set_t before = allowed();
  if (!CPU_ISSET(static_cast<std::size_t>(cpu), &before)) {
    release();
    return false;
  }
  if (!active() && CPU_COUNT(&before) == 1) return true;
  const cpu_set_t set = only(cpu);
  if (::sched_setaffinity(tid_, sizeof set, &set) != 0) {
    release();
    return false;
  }
  original_ = before;
  cpu_ = cpu;
  return true;
}

void CpuPin::release() {
  if (!active()) return;
  const cpu_set_t set = only(cpu_);
  cpu_ = -1;
  const cpu_set_t present = present_of(tid_);
  if (CPU_EQUAL(&present, &set)) (void)::sched_setaffinity(tid_, sizeof original_, &original_);
}

}  // namespace backtrail::tracee
