// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/stop_cpu.hpp"

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// Signals between two reads of the thread's CPU: /proc/TID/stat costs about as much as a stop.
constexpr std::size_t kBatch = 64;
/// Longest time for a batch of fast signals: 2000 signals per second.
constexpr std::chrono::milliseconds kBatchLimit{32};
/// Time without a signal after which the affinity is restored.
constexpr std::chrono::milliseconds kQuiet{5};

cpu_set_t only(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return set;
}

}  // namespace

void StopCpu::note_signal(pid_t tid) {
  const auto now = Clock::now();
  if (tid != tid_ || now - last_ > kQuiet) {
    go_back();
    begin(tid, now);
  }
  last_ = now;
  if (++signals_ < kBatch) return;
  const bool fast = now - since_ <= kBatchLimit;
  if (fast) {
    follow(tid);
  } else {
    go_back();
  }
  begin(tid, now);
}

void StopCpu::begin(pid_t tid, Clock::time_point now) {
  tid_ = tid;
  signals_ = 0;
  since_ = now;
}

void StopCpu::look() {
  if (narrowed_ && Clock::now() - last_ > kQuiet) go_back();
}

void StopCpu::follow(pid_t tid) {
  const auto stat = ProcFs{}.stat(tid);
  if (narrowed_ && stat && stat->processor == cpu_) return;
  go_back();
  if (!stat || stat->processor < 0 || stat->processor >= CPU_SETSIZE) return;
  if (::sched_getaffinity(0, sizeof original_, &original_) != 0) return;
  // The tracing thread must not leave the CPUs that it is confined to.
  const auto cpu = static_cast<std::size_t>(stat->processor);
  if (CPU_COUNT(&original_) < 2 || !CPU_ISSET(cpu, &original_)) return;
  const cpu_set_t set = only(stat->processor);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) return;
  narrowed_ = true;
  cpu_ = stat->processor;
}

void StopCpu::go_back() {
  tid_ = 0;
  if (!narrowed_) return;
  narrowed_ = false;
  // If another process has changed the affinity meanwhile, it stays.
  cpu_set_t present;
  const cpu_set_t set = only(cpu_);
  if (::sched_getaffinity(0, sizeof present, &present) == 0 && !CPU_EQUAL(&present, &set)) return;
  (void)::sched_setaffinity(0, sizeof original_, &original_);
}

}  // namespace backtrail::tracee
