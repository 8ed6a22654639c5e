// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/thread_traces.hpp"

#include <functional>

#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

/// Returns the trace of a thread of the process for which `is_one` holds; null if there is none.
ThreadTrace* trace_of(Process& process, const std::function<bool(const ThreadTrace&)>& is_one) {
  for (const auto& thread : process.threads()) {
    if (thread->trace() && is_one(*thread->trace())) return thread->trace().get();
  }
  return nullptr;
}

}  // namespace

bool asks_for_trace(Process& process) {
  return trace_of(process, &ThreadTrace::asked_for) != nullptr;
}

ThreadTrace* wanted_trace_of(Process& process) {
  return trace_of(process, &ThreadTrace::wanted);
}

ThreadTrace* cache_trace_of(Process& process) {
  return trace_of(process, [](const ThreadTrace& trace) {
    return trace.wanted() && trace.source().kind() == SourceKind::kCache;
  });
}

void end_trace(Thread& thread) {
  if (!thread.trace()) return;
  thread.cpu_pin()->release();  // nobody sees its calls from now on
  thread.trace()->end();
  if (thread.stopped()) thread.trace()->source().detach(thread);
  thread.trace().reset();
}

void end_trace_beside(Thread& thread) {
  if (wanted_trace_of(thread.process()) != nullptr) return;
  thread.trace()->end();
  thread.trace()->source().detach(thread);
  thread.trace().reset();
}

void unblock_held_signals(const Thread& thread, std::uint64_t signals) {
  if (signals == 0) return;
  const auto mask = request::read_signal_mask(thread.tid());
  if (mask) (void)request::write_signal_mask(thread.tid(), *mask & ~signals);
}

}  // namespace backtrail::tracee
