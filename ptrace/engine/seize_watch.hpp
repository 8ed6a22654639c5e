// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Seizing threads of a program that executes another one meanwhile.

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "ptrace/os/wait_status.hpp"

namespace backtrail::tracee {

/// Keeps PTRACE_SEIZE from waiting for ever. The request waits for a thread that executes a program
/// (cred_guard_mutex in ptrace_attach()); that thread waits until the other threads of its process
/// are gone (de_thread() in fs/exec.c); and those that are seized already are gone only when their
/// ends have been waited for. A helper thread does that while a request waits.
class SeizeWatch {
 public:
  SeizeWatch() = default;
  ~SeizeWatch();
  SeizeWatch(const SeizeWatch&) = delete;
  SeizeWatch& operator=(const SeizeWatch&) = delete;

  /// Starts the helper. No effect if it runs. Call before a thread is seized while others of its
  /// process are, its leader apart.
  void begin();
  /// Errors: those of request::seize().
  Result<void> seize(pid_t tid, unsigned long options);
  /// Returns what the helper has waited for since the last call, oldest first: ends and stops.
  std::vector<std::pair<pid_t, WaitStatus>> take_news();

 private:
  void watch();

  std::atomic<unsigned> begun_and_done_{0};  ///< Odd while a request may wait.
  std::mutex mutex_;  ///< Guards `over_` and `news_`. The helper waits for threads with it.
  std::condition_variable is_over_;
  bool over_ = false;
  std::vector<std::pair<pid_t, WaitStatus>> news_;
  std::thread helper_;
};

}  // namespace backtrail::tracee
