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
  void add(std::uint64_t order, const StopEvent& event);
  /// The end of a process that the client lists.
  void add(std::uint64_t order, UntoldEnd end);

  [[nodiscard]] bool empty() const { return ends_.empty(); }
  /// Number of the oldest. Requires !empty().
  [[nodiscard]] std::uint64_t oldest() const { return ends_.front().order; }
  /// Takes the oldest out. Requires !empty().
  StopEvent take();
  /// Returns those that the client still lists; valid until the next change.
  [[nodiscard]] std::vector<const UntoldEnd*> untold() const;

  /// Drops everything about the process. Returns true if the client still listed it.
  bool forget(pid_t pid);
  /// Drops the ends of threads.
  void forget_threads();

 private:
  struct Entry {
    std::uint64_t order = 0;
    UntoldEnd end;
    bool listed = false;
  };
  std::deque<Entry> ends_;
};

}  // namespace backtrail::tracee
