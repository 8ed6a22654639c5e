// SPDX-License-Identifier: Apache-2.0
// Decides which threads are recorded.

#include <algorithm>
#include <set>

#include "arch/base/log.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::tracee {
namespace {

std::uint64_t as_detail(pid_t id) {
  return static_cast<std::uint64_t>(id);
}

bool runs_from_cache(Thread& thread) {
  return thread.trace() && thread.trace()->source().kind() == SourceKind::kCache;
}

/// Returns the trace of a thread of the process for which `is_one` holds; null if there is none.
ThreadTrace* trace_of(Process& process, const std::function<bool(const ThreadTrace&)>& is_one) {
  for (const auto& thread : process.threads()) {
    if (thread->trace() && is_one(*thread->trace())) return thread->trace().get();
  }
  return nullptr;
}

bool asks_for(Process& process) {
  return trace_of(process, &ThreadTrace::asked_for) != nullptr;
}

ThreadTrace* wanted_trace_of(Process& process) {
  return trace_of(process, &ThreadTrace::wanted);
}

/// Returns a wanted trace of the source `cache`; null if there is none.
ThreadTrace* cache_trace_of(Process& process) {
  return trace_of(process, [](const ThreadTrace& trace) {
    return trace.wanted() && trace.source().kind() == SourceKind::kCache;
  });
}

}  // namespace

void Engine::start_beside(Thread& thread, SourceKind source, const TraceConfig& config) {
  auto started = ThreadTrace::start(thread, source, config);
  if (!started) {
    log::ptrace().warn("tid={}: {}", thread.tid(), started.error().message());
    return;
  }
  (*started)->set_asked_for(false);
  thread.trace() = std::move(*started);
  watch_buffer(thread);
}

void Engine::each_stopped(const std::vector<ThreadId>& ids,
                          const std::function<void(Thread&)>& action) {
  std::vector<ThreadId> ran;
  for (const ThreadId& id : ids) {
    const Thread* thread = tasks_.find(id);
    if (thread != nullptr && !thread->stopped()) ran.push_back(id);
  }
  const auto is_one = [&](const Thread& thread) {
    return std::find(ran.begin(), ran.end(), thread.id()) != ran.end();
  };
  std::set<pid_t> known;
  for (const auto& [tid, thread] : tasks_.threads()) known.insert(tid);
  if (!ran.empty()) stop_threads(is_one);
  for (const ThreadId& id : ids) {
    if (Thread* thread = tasks_.find(id)) action(*thread);
  }
  // Threads created by one of them meanwhile are stopped already or will be.
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (known.contains(tid)) continue;
    ran.push_back(thread->id());
    if (!thread->stopped()) thread->control().stop_wanted = false;
  }
  for (const ThreadId& id : ran) {
    Thread* thread = tasks_.find(id);
    if (thread == nullptr) continue;
    if (!thread->stopped()) thread->control().stop_wanted = false;
    if (!thread->stopped()) continue;
    if (thread->control().resumed && !thread->control().pending) go(*thread);
  }
}

void Engine::watch_buffer(Thread& thread) {
  if (!thread.trace()) return;
  const int fd = thread.trace()->wake_fd();
  if (fd >= 0) wake_ups_.watch(thread.tid(), fd);
}

/// Reads the buffers of running threads. Those of stopped threads are read at the stop.
void Engine::read_buffers() {
  for (const pid_t tid : wake_ups_.take()) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || !thread->trace() || thread->trace()->wake_fd() < 0) {
      wake_ups_.forget(tid);
    } else if (!thread->stopped() && thread->trace()->keep_up()) {
      each_stopped({thread->id()}, [](Thread& held) {
        if (held.trace()) held.trace()->source().flush();
      });
    }
  }
}

Result<void> Engine::change_trace(ThreadId id,
                                  const std::function<Result<void>(ThreadTrace&)>& change) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "change trace", as_detail(id.tid));
  if (!thread->trace()) return fail(TraceErrc::kNotEnabled, "change trace", as_detail(id.tid));
  Result<void> done;
  each_stopped({id}, [&](Thread& stopped) {
    if (!stopped.trace() || !stopped.stopped()) return;
    stopped.trace()->source().flush();
    done = change(*stopped.trace());
    // The trace may have another descriptor now.
    watch_buffer(stopped);
  });
  return done;
}

Result<void> Engine::stream_trace(ThreadId id) {
  Thread* thread = tasks_.find(id);
  if (thread != nullptr && thread->trace() && thread->trace()->source().streams()) return {};
  const std::size_t threads = thread == nullptr ? 0 : thread->process().threads().size();
  return change_trace(id, [&](ThreadTrace& trace) { return trace.stream(threads); });
}

Result<void> Engine::mark_switches(ThreadId id) {
  return change_trace(id, [](ThreadTrace& trace) { return trace.mark_switches(); });
}

Result<void> Engine::see_kernel(ThreadId id) {
  return change_trace(id, [](ThreadTrace& trace) { return trace.see_kernel(); });
}

void Engine::record_unasked(Thread& thread, SourceKind source, const TraceConfig& config) {
  start_beside(thread, source, config);
  if (!thread.trace()) return;
  thread.trace()->set_wanted();
  if (on_recorded_unasked_) on_recorded_unasked_(thread);
}

void Engine::record_from_birth(Thread& thread) {
  ThreadTrace* trace = cache_trace_of(thread.process());
  if (trace == nullptr) trace = wanted_trace_of(thread.process());
  if (trace != nullptr) record_unasked(thread, trace->source().kind(), trace->config());
}

void Engine::record_from_start(Process& process) {
  if (!from_start_) return;
  for (const auto& thread : process.threads()) {
    if (thread->stopped() && !thread->trace()) record_unasked(*thread, source_, *from_start_);
  }
}

void Engine::record_beside(Process& process) {
  const ThreadTrace* trace = cache_trace_of(process);
  if (trace == nullptr) return;
  std::vector<ThreadId> others;
  for (const auto& thread : process.threads()) {
    if (!thread->trace() && !thread->control().zombie && !thread->control().starting) {
      others.push_back(thread->id());
    }
  }
  const TraceConfig config = trace->config();
  each_stopped(others, [&](Thread& thread) {
    if (!thread.trace()) start_beside(thread, SourceKind::kCache, config);
  });
}

void Engine::end_trace_beside(Thread& thread) {
  if (wanted_trace_of(thread.process()) != nullptr) return;
  thread.trace()->end();
  thread.trace()->source().detach(thread);
  thread.trace().reset();
}

Result<void> Engine::enable_trace(ThreadId id, const TraceConfig& config) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "enable trace", as_detail(id.tid));
  if (thread->trace()) {
    if (thread->trace()->asked_for()) {
      return fail(TraceErrc::kAlreadyEnabled, "enable trace", as_detail(id.tid));
    }
    if (thread->trace()->suits(config)) return hand_over_trace(id, config);
  }
  // A running thread is stopped briefly, so that it continues under the source.
  Result<void> done;
  each_stopped({id}, [&](Thread& stopped) {
    if (stopped.trace() && stopped.stopped()) stopped.trace()->source().detach(stopped);
    auto started = ThreadTrace::start(stopped, source_, config);
    if (started) {
      stopped.trace() = std::move(*started);
      watch_buffer(stopped);
    } else {
      done = fail(started.error());
    }
  });
  BT_CHECKED(done);
  thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kTraceeGone, "enable trace", as_detail(id.tid));
  record_beside(thread->process());
  return {};
}

Result<void> Engine::hand_over_trace(ThreadId id, const TraceConfig& config) {
  Result<void> done;
  each_stopped({id}, [&](Thread& stopped) {
    if (!stopped.trace()) return;
    stopped.trace()->set_asked_for(true);
    if (!stopped.stopped()) return;
    if (const auto pc = stopped.next_pc()) {
      stopped.trace()->hand_over(stopped.process(), *pc, config);
    } else {
      done = fail(pc.error());
    }
  });
  return done;
}

Result<void> Engine::disable_trace(ThreadId id) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "disable trace", as_detail(id.tid));
  if (!thread->trace() || !thread->trace()->asked_for()) {
    return fail(TraceErrc::kNotEnabled, "disable trace", as_detail(id.tid));
  }
  thread->trace()->set_asked_for(false);
  std::vector<ThreadId> over{id};
  if (!asks_for(thread->process())) {
    over.clear();
    for (const auto& each : thread->process().threads()) over.push_back(each->id());
  } else if (runs_from_cache(*thread)) {
    return {};  // the thread stays with its source as long as another one is recorded
  }
  each_stopped(over, [](Thread& stopped) {
    if (!stopped.trace()) return;
    stopped.trace()->end();
    if (stopped.stopped()) stopped.trace()->source().detach(stopped);
    stopped.trace().reset();
  });
  return {};
}

}  // namespace backtrail::tracee
