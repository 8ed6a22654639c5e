// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/recording.hpp"

#include <vector>

#include "arch/base/log.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/thread_traces.hpp"

namespace backtrail::tracee {
namespace {

bool runs_from_cache(Thread& thread) {
  return thread.trace() && thread.trace()->source().kind() == SourceKind::kCache;
}

}  // namespace

Result<void> Recording::enable(ThreadId id, const TraceConfig& config) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "enable trace", as_detail(id.tid));
  if (thread->trace()) {
    if (thread->trace()->asked_for()) {
      return fail(TraceErrc::kAlreadyEnabled, "enable trace", as_detail(id.tid));
    }
    if (thread->trace()->suits(config)) return hand_over(id, config);
  }
  // A running thread is stopped briefly, so that it continues under the source.
  Result<void> done;
  stopper_.each_stopped({id}, [&](Thread& stopped) {
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

Result<void> Recording::disable(ThreadId id) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "disable trace", as_detail(id.tid));
  if (!thread->trace() || !thread->trace()->asked_for()) {
    return fail(TraceErrc::kNotEnabled, "disable trace", as_detail(id.tid));
  }
  if (thread->trace()->keeps_past()) {
    stopper_.each_stopped({id}, [](Thread& stopped) {
      if (stopped.trace()) stopped.trace()->take_back();
    });
    return {};
  }
  thread->trace()->set_asked_for(false);
  std::vector<ThreadId> over{id};
  if (!asks_for_trace(thread->process())) {
    over.clear();
    for (const auto& each : thread->process().threads()) over.push_back(each->id());
  } else if (runs_from_cache(*thread)) {
    return {};  // the thread stays with its source as long as another one is recorded
  }
  stopper_.each_stopped(over, [this](Thread& stopped) {
    if (!stopped.trace()) return;
    stopped.trace()->end();
    if (stopped.stopped()) stopped.trace()->source().detach(stopped);
    stopped.trace().reset();
    if (from_start_) (void)record_history(stopped);
  });
  return {};
}

Result<void> Recording::begin_history(const TraceConfig& config) {
  const bool is_first = !from_start_ && !tasks_.any_running();
  from_start_ = config;
  Result<void> done;
  for (Process* process : tasks_.known()) {
    std::vector<ThreadId> all;
    for (const auto& thread : process->threads()) {
      if (!thread->control().zombie && !thread->control().starting) all.push_back(thread->id());
    }
    if (is_first) process->code_writers->begin_history();
    stopper_.each_stopped(all, [&](Thread& thread) {
      if (thread.trace() && thread.trace()->wanted()) return;
      // The thread was recorded only for other threads' sake.
      if (thread.trace()) end_trace(thread);
      if (const auto started = record_history(thread); !started) done = fail(started.error());
    });
  }
  return done;
}

void Recording::end_history() {
  from_start_.reset();
  for (Process* process : tasks_.known()) {
    for (const auto& thread : process->threads()) {
      if (!thread->trace() || !thread->trace()->keeps_past()) continue;
      thread->trace()->keep_past(false);
      if (!thread->trace()->asked_for()) thread->trace()->set_asked_for(false);
    }
    end_unwanted(*process);
  }
}

/// Ends the traces that nobody wants; with translated code, only if all threads can do without.
void Recording::end_unwanted(Process& process) {
  const bool is_shared = cache_trace_of(process) != nullptr;
  std::vector<ThreadId> over;
  for (const auto& thread : process.threads()) {
    if (!thread->trace() || thread->trace()->wanted()) continue;
    if (!is_shared || !runs_from_cache(*thread)) over.push_back(thread->id());
  }
  stopper_.each_stopped(over, [](Thread& stopped) { end_trace(stopped); });
}

Result<void> Recording::stream(ThreadId id) {
  Thread* thread = tasks_.find(id);
  if (thread != nullptr && thread->trace() && thread->trace()->source().streams()) return {};
  const std::size_t threads = thread == nullptr ? 0 : thread->process().threads().size();
  return change(id, [&](ThreadTrace& trace) { return trace.stream(threads); });
}

Result<void> Recording::mark_switches(ThreadId id) {
  return change(id, [](ThreadTrace& trace) { return trace.mark_switches(); });
}

Result<void> Recording::see_kernel(ThreadId id) {
  return change(id, [](ThreadTrace& trace) { return trace.see_kernel(); });
}

Result<void> Recording::change(ThreadId id, const std::function<Result<void>(ThreadTrace&)>& how) {
  Thread* thread = tasks_.find(id);
  if (thread == nullptr) return fail(TraceErrc::kNotFound, "change trace", as_detail(id.tid));
  if (!thread->trace()) return fail(TraceErrc::kNotEnabled, "change trace", as_detail(id.tid));
  Result<void> done;
  stopper_.each_stopped({id}, [&](Thread& stopped) {
    if (!stopped.trace() || !stopped.stopped()) return;
    stopped.trace()->source().flush();
    done = how(*stopped.trace());
    // The trace may have another descriptor now.
    watch_buffer(stopped);
  });
  return done;
}

Result<void> Recording::hand_over(ThreadId id, const TraceConfig& config) {
  Result<void> done;
  stopper_.each_stopped({id}, [&](Thread& stopped) {
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

void Recording::record_from_birth(Thread& thread) {
  if (from_start_) {
    (void)record_history(thread);
    return;
  }
  ThreadTrace* trace = cache_trace_of(thread.process());
  if (trace == nullptr) trace = wanted_trace_of(thread.process());
  if (trace != nullptr) record_unasked(thread, trace->source().kind(), trace->config());
}

void Recording::record_from_start(Process& process) {
  if (!from_start_) return;
  for (const auto& thread : process.threads()) {
    if (thread->stopped() && !thread->trace()) (void)record_history(*thread);
  }
}

/// Records the stopped thread for its past. Errors: the source's.
Result<void> Recording::record_history(Thread& thread) {
  BT_CHECKED(start_beside(thread, source_, *from_start_));
  thread.trace()->set_wanted();
  thread.trace()->keep_past(true);
  if (on_unasked_) on_unasked_(thread);
  return {};
}

void Recording::record_beside(Process& process) {
  const ThreadTrace* trace = cache_trace_of(process);
  if (trace == nullptr) return;
  std::vector<ThreadId> others;
  for (const auto& thread : process.threads()) {
    if (!thread->trace() && !thread->control().zombie && !thread->control().starting) {
      others.push_back(thread->id());
    }
  }
  const TraceConfig config = trace->config();
  stopper_.each_stopped(others, [&](Thread& thread) {
    if (!thread.trace()) (void)start_beside(thread, SourceKind::kCache, config);
  });
}

void Recording::record_unasked(Thread& thread, SourceKind source, const TraceConfig& config) {
  if (!start_beside(thread, source, config)) return;
  thread.trace()->set_wanted();
  if (on_unasked_) on_unasked_(thread);
}

Result<void> Recording::start_beside(Thread& thread, SourceKind source, const TraceConfig& config) {
  auto started = ThreadTrace::start(thread, source, config);
  if (!started) {
    log::ptrace().warn("tid={}: {}", thread.tid(), started.error().message());
    return fail(started.error());
  }
  (*started)->set_asked_for(false);
  thread.trace() = std::move(*started);
  watch_buffer(thread);
  return {};
}

void Recording::watch_buffer(Thread& thread) {
  if (!thread.trace()) return;
  const int fd = thread.trace()->wake_fd();
  if (fd >= 0) wake_ups_.watch(thread.tid(), fd);
}

void Recording::read_buffers() {
  for (const pid_t tid : wake_ups_.take()) {
    Thread* thread = tasks_.find_thread(tid);
    if (thread == nullptr || !thread->trace() || thread->trace()->wake_fd() < 0) {
      wake_ups_.forget(tid);
    } else if (!thread->stopped() && thread->trace()->keep_up()) {
      stopper_.each_stopped({thread->id()}, [](Thread& held) {
        if (held.trace()) held.trace()->source().flush();
      });
    }
  }
}

}  // namespace backtrail::tracee
