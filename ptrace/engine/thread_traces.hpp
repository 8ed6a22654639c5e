// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Small operations on the traces of threads that several parts of the engine need.

#include <cstdint>

#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

/// Returns true if the client asked for the trace of a thread of the process.
[[nodiscard]] bool asks_for_trace(Process& process);
/// Returns a wanted trace of the process (ThreadTrace::wanted()); null if there is none.
[[nodiscard]] ThreadTrace* wanted_trace_of(Process& process);
/// Returns a wanted trace of the source `cache`; null if there is none.
[[nodiscard]] ThreadTrace* cache_trace_of(Process& process);

/// Ends the thread's trace, if it has one. A stopped thread gets its native state.
void end_trace(Thread& thread);
/// Ends the trace of a stopped thread, which nobody asked for, if no trace of the process is wanted
/// any more.
void end_trace_beside(Thread& thread);
/// Call at a new task's first stop. Unblocks signals that only the source of the thread that made
/// it held back (BranchSource::held_signals()).
void unblock_held_signals(const Thread& thread, std::uint64_t signals);

}  // namespace backtrail::tracee
