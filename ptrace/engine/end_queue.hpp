// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Ends of processes and threads that the client has not been told yet.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "ptrace/tracee/stop_event.hpp"

namespace backtrail::tracee {

/// A process that has ended, of which the client knows nothing yet: for the client it is still
/// there, with these threads.
struct UntoldEnd {
  StopEvent event{};
  bool attached = false;
  std::vector<ThreadId> threads{};
};

/// In the order in which they happened.
class EndQueue {
 public:
  /// The end of a thread, or of a process that the client does not list.
  /// @param order Number among all events; grows from call to call.
  /// @param asked_for The client wants to hear of this thread's end whatever its other choices.
  void add(std::uint64_t order, const StopEvent& event, bool asked_for = false);
  /// The end of a process that the client lists.
  void add(std::uint64_t order, UntoldEnd end);

  /// Returns true if none may be taken: there is none, or all are held.
  [[nodiscard]] bool empty() const { return first() == ends_.end(); }
  /// Number of the oldest that is not held. Requires !empty().
  [[nodiscard]] std::uint64_t oldest() const { return first()->order; }
  /// Takes the oldest that is not held out. Requires !empty().
  StopEvent take();
  /// Returns those that the client still lists; valid until the next change.
  [[nodiscard]] std::vector<const UntoldEnd*> untold() const;

  /// Drops everything about the process. Returns true if the client still listed it.
  bool forget(pid_t pid);
  /// Drops the ends of threads that are not asked for.
  void forget_threads();

  /// Holds the ends of threads.
  void hold_threads();
  /// The end of the thread is not held any more.
  void release(ThreadId id);
  /// Returns the threads whose ends are held.
  [[nodiscard]] std::vector<ThreadId> held() const;
  /// Drops what is held.
  void forget_held();

 private:
  struct Entry {
    std::uint64_t order = 0;
    UntoldEnd end;
    bool listed = false;
    bool asked_for = false;
    bool held = false;
  };
  [[nodiscard]] std::deque<Entry>::const_iterator first() const;

  std::deque<Entry> ends_;
};

}  // namespace backtrail::tracee
