// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the sources of running threads ask of the tracing thread.

#include <set>

#include "ptrace/engine/spare_cpu.hpp"
#include "ptrace/engine/task_table.hpp"

namespace backtrail::tracee {

/// A source may want its running thread stopped at some time, and may let it post requests without
/// stopping (BranchSource::stop_due(), BranchSource::serve()). Remembers which threads that
/// concerns, so that the others cost nothing.
class SourceDemands {
 public:
  /// `tasks` must outlive the object.
  explicit SourceDemands(const TaskTable& tasks) : tasks_{tasks} {}

  /// Call when the thread's source has resumed it.
  void note_resumed(Thread& thread);
  /// Call when the resumed thread may post requests.
  void note_asking(Thread& thread);

  /// Returns true if a thread may have to be stopped soon: stop_who_is_due() should then be called
  /// every millisecond.
  [[nodiscard]] bool any_due() const { return !due_.empty(); }
  /// Asks the threads whose time has come to stop.
  void stop_who_is_due();

  /// Returns true if there is a CPU on which to look for requests all the time.
  [[nodiscard]] bool may_poll() { return spare_cpu_.is_there(); }
  /// Returns true if serve_one() should be called.
  [[nodiscard]] bool any_asking() const { return !asking_.empty(); }
  /// Answers a request of a running thread. Returns false if there is none.
  bool serve_one();
  /// Does a part of what threads are likely to ask for next. Returns false if there is nothing more
  /// to do.
  bool work_ahead();
  /// Call before sleeping: threads that ask from now on wait, or stop.
  void let_wait();

 private:
  const TaskTable& tasks_;
  std::set<pid_t> due_;  ///< Threads that may have to be stopped at a time that their source knows.
  SpareCpu spare_cpu_;
  std::set<pid_t> asking_;  ///< Threads that may post requests without stopping.
};

}  // namespace backtrail::tracee
