// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides which threads are recorded.

#include <functional>
#include <optional>
#include <utility>

#include "arch/base/result.hpp"
#include "ptrace/engine/stopper.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/engine/wake_ups.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::tracee {

class ThreadTrace;

/// Starts, changes and ends traces, at the client's request and without. A trace begins and ends
/// while its thread is stopped; threads that run are stopped briefly.
class Recording {
 public:
  /// @param source Records all threads that the client asks for. The others must outlive the
  /// object.
  Recording(SourceKind source, const TaskTable& tasks, Stopper& stopper, WakeUps& wake_ups)
      : source_{source}, tasks_{tasks}, stopper_{stopper}, wake_ups_{wake_ups} {}

  [[nodiscard]] SourceKind source() const { return source_; }
  /// See Engine.
  void set_from_start(const TraceConfig& config) { from_start_ = config; }
  Result<void> begin_history(const TraceConfig& config);
  void end_history();
  [[nodiscard]] bool keeps_history() const { return from_start_.has_value(); }
  void set_on_unasked(std::function<void(Thread&)> handler) { on_unasked_ = std::move(handler); }

  // At the client's request; see Engine.
  Result<void> enable(ThreadId id, const TraceConfig& config);
  Result<void> disable(ThreadId id);
  Result<void> stream(ThreadId id);
  Result<void> mark_switches(ThreadId id);
  Result<void> see_kernel(ThreadId id);

  /// Call at a new thread's first stop. It is recorded if its process is.
  void record_from_birth(Thread& thread);
  /// Call when a process has been launched, attached to or forked. Its stopped threads are recorded
  /// if set_from_start() was called.
  void record_from_start(Process& process);
  /// Reads the buffers of running threads. Those of stopped threads are read at the stop.
  void read_buffers();

 private:
  Result<void> change(ThreadId id, const std::function<Result<void>(ThreadTrace&)>& how);
  Result<void> hand_over(ThreadId id, const TraceConfig& config);
  void record_beside(Process& process);
  Result<void> record_history(Thread& thread);
  void record_unasked(Thread& thread, SourceKind source, const TraceConfig& config);
  Result<void> start_beside(Thread& thread, SourceKind source, const TraceConfig& config);
  void end_unwanted(Process& process);
  void watch_buffer(Thread& thread);

  SourceKind source_;
  const TaskTable& tasks_;
  Stopper& stopper_;
  WakeUps& wake_ups_;
  std::optional<TraceConfig> from_start_;
  std::function<void(Thread&)> on_unasked_;
};

}  // namespace backtrail::tracee
