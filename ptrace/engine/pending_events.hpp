// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Events that have happened and that the client has not been told yet.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ptrace/engine/end_queue.hpp"
#include "ptrace/engine/engine_settings.hpp"
#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// Hands out events in the order in which they happened. A thread has at most one pending event,
/// which is kept in its ThreadControl; ends outlive their threads and are kept here. Events of
/// threads that the client has not resumed, and of processes that it does not know, wait.
class PendingEvents {
 public:
  /// Both arguments must outlive the object.
  PendingEvents(const TaskTable& tasks, const EngineSettings& settings)
      : tasks_{tasks}, settings_{settings} {}

  /// Replaces the thread's pending event.
  void put(Thread& thread, StopEvent event);
  void drop(Thread& thread);
  /// Drops the process's end and those of its threads. Returns true if the client still listed it.
  bool forget(pid_t pid) { return ended_.forget(pid); }
  /// Drops the ends of threads without ThreadOptions::exit: the client does not want to hear of
  /// them any more.
  void forget_thread_ends() { ended_.forget_threads(); }
  /// Call in all-stop when an event has been taken: the ends of threads wait until the client
  /// resumes these threads.
  void hold_thread_ends() { ended_.hold_threads(); }
  /// The client has resumed the thread, whose end may wait.
  void release_thread_end(ThreadId id) { ended_.release(id); }
  /// Drops the ends that wait: the client has seen that these threads are gone.
  void forget_held_ends() { ended_.forget_held(); }
  /// Returns the threads whose ends wait.
  [[nodiscard]] std::vector<ThreadId> held_ends() const { return ended_.held(); }

  /// The process has ended.
  void note_end(const Process& process, const StopEvent& end);
  /// A process that the server does not trace any more has ended.
  void note_untraced_end(const StopEvent& end) { ended_.add(next_order_++, end); }
  /// The thread has ended, its process has not.
  void note_thread_end(Thread& thread, int exit_code);
  /// The client has resumed a thread that has ended already.
  void note_resumed_ended() { resumed_one_ended_ = true; }

  /// Returns true if take() has an event.
  [[nodiscard]] bool any();
  /// Returns true if no thread may run before the next event has been taken, as in all-stop.
  [[nodiscard]] bool come_first() { return !settings_.non_stop && any(); }
  /// Takes the oldest event; nullopt if there is none. Its thread is not resumed any more.
  std::optional<StopEvent> take();
  /// Returns kNoResumed, once, when the last thread that the client resumed has gone.
  std::optional<StopEvent> take_no_resumed();
  /// Call in all-stop when an event has been taken: nothing is resumed then, which is no news.
  void forget_resumed_ended() { resumed_one_ended_ = false; }
  /// Returns the processes whose ends take() will still return; valid until the next change.
  [[nodiscard]] std::vector<const UntoldEnd*> untold_ends() const { return ended_.untold(); }

 private:
  Thread* oldest();
  void note_told(const StopEvent& birth);
  StopEvent take_of(Thread& thread);

  const TaskTable& tasks_;
  const EngineSettings& settings_;
  EndQueue ended_;
  /// Threads with pending events by order; may contain outdated entries.
  std::map<std::uint64_t, pid_t> posted_;
  std::uint64_t next_order_ = 1;
  bool resumed_one_ended_ = false;  ///< A thread that the client had resumed is gone.
};

}  // namespace backtrail::tracee
