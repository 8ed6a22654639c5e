// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/recording.hpp"

#include <vector>

#include "arch/base/log.hpp"
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
  thread->trace()->set_asked_for(false);
  std::vector<ThreadId> over{id};
  if (!asks_for_trace(thread->process())) {
    over.clear();
    for (const auto& each : thread->process().threads()) over.push_back(each->id());
  } else if (runs_from_cache(*thread)) {
    return {};  // the thread stays with its source as long as another one is recorded
  }
  stopper_.each_stopped(over, [](Thread& stopped) {
    if (!stopped.trace()) return;
    stopped.trace()->end();
    if (stopped.stopped()) stopped.trace()->source().detach(stopped);
    stopped.trace().reset();
  });
  return {};
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
  ThreadTrace* trace = cache_trace_of(thread.process());
  if (trace == nullptr) trace = wanted_trace_of(thread.process());
  if (trace != nullptr) record_unasked(thread, trace->source().kind(), trace->config());
}

void Recording::record_from_start(Process& process) {
  if (!from_start_) return;
  for (const auto& thread : process.threads()) {
    if (thread->stopped() && !thread->trace()) record_unasked(*thread, source_, *from_start_);
  }
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
    if (!thread.trace()) start_beside(thread, SourceKind::kCache, config);
  });
}

void Recording::record_unasked(Thread& thread, SourceKind source, const TraceConfig& config) {
  start_beside(thread, source, config);
  if (!thread.trace()) return;
  thread.trace()->set_wanted();
  if (on_unasked_) on_unasked_(thread);
}

void Recording::start_beside(Thread& thread, SourceKind source, const TraceConfig& config) {
  auto started = ThreadTrace::start(thread, source, config);
  if (!started) {
    log::ptrace().warn("tid={}: {}", thread.tid(), started.error().message());
    return;
  }
  (*started)->set_asked_for(false);
  thread.trace() = std::move(*started);
  watch_buffer(thread);
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
