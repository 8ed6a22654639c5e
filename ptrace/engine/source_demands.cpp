// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/source_demands.hpp"

#include <algorithm>
#include <chrono>

#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {

void SourceDemands::note_resumed(Thread& thread) {
  if (thread.source()->stop_due()) due_.insert(thread.tid());
}

void SourceDemands::note_asking(Thread& thread) {
  asking_.insert(thread.tid());
}

void SourceDemands::stop_who_is_due() {
  if (due_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(due_, [&](pid_t tid) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || thread->source() == nullptr) return true;
    const auto due = thread->source()->stop_due();
    if (due && now < *due) return false;
    if (due && !thread->stopped()) (void)thread->interrupt();
    return true;
  });
}

bool SourceDemands::serve_one() {
  for (const pid_t tid : asking_) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || thread->stopped()) continue;
    if (thread->source() != nullptr && thread->source()->serve(*thread)) return true;
  }
  return false;
}

bool SourceDemands::work_ahead() {
  return std::any_of(asking_.begin(), asking_.end(), [this](pid_t tid) {
    Thread* thread = tasks_.find_thread(tid);
    return thread != nullptr && thread->source() != nullptr && !thread->stopped() &&
           thread->source()->work_ahead(*thread);
  });
}

void SourceDemands::let_wait() {
  for (const pid_t tid : asking_) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread != nullptr && thread->source() != nullptr) thread->source()->let_wait();
  }
  asking_.clear();
}

}  // namespace backtrail::tracee
