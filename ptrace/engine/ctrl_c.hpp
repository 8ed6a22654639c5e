// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The client's Ctrl-C until a thread answers it.

#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// Chooses who answers. A Ctrl-C that no thread can answer now is *due*: the next thread that runs
/// on answers it.
class CtrlC {
 public:
  /// `tasks` must outlive the object.
  explicit CtrlC(const TaskTable& tasks) : tasks_{tasks} {}

  /// Chooses a thread and marks it: its next stop reports SIGINT. Null if none can answer now; the
  /// Ctrl-C is due then, if there is a process that the client knows.
  Thread* ask();
  /// Call for a thread that is about to run on. Marks it if a Ctrl-C is due and it can answer.
  void offer(Thread& thread);
  /// Ends the thread's obligation to stop for the client. Returns true if a Ctrl-C is to be
  /// answered by another thread instead.
  static bool take(Thread& thread);
  /// Call when another event came before the Ctrl-C and nothing runs.
  void expect() { due_ = true; }
  [[nodiscard]] bool due() const { return due_; }
  /// Drops the Ctrl-C, whoever was to answer it.
  void forget();
  /// Call when the client turns to another program: a Ctrl-C that nobody could answer was meant for
  /// the former one.
  void drop_stale();

 private:
  [[nodiscard]] Thread* choose() const;

  const TaskTable& tasks_;
  bool due_ = false;  ///< A Ctrl-C has not been reported yet, and no thread is asked.
};

}  // namespace backtrail::tracee
