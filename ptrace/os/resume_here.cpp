// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/resume_here.hpp"

#include <cstddef>

namespace backtrail::tracee {
namespace {

/// ptrace(2) ties a traced thread to the thread that traces it.
thread_local std::optional<int> resume_cpu;

}  // namespace

void ResumeHere::use(std::optional<int> cpu) {
  resume_cpu = cpu;
}

bool ResumeHere::in_use() {
  return resume_cpu.has_value();
}

ResumeHere::ResumeHere(pid_t tid) : tid_{tid} {  // NOLINT: original_ is filled if it is used
  if (!resume_cpu || ::sched_getaffinity(tid, sizeof original_, &original_) != 0) return;
  const auto cpu = static_cast<std::size_t>(*resume_cpu);
  if (CPU_COUNT(&original_) == 1 || !CPU_ISSET(cpu, &original_)) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(cpu, &here);
  narrowed_ = ::sched_setaffinity(tid, sizeof here, &here) == 0;
}

ResumeHere::~ResumeHere() {
  if (narrowed_) (void)::sched_setaffinity(tid_, sizeof original_, &original_);
}

}  // namespace backtrail::tracee
