// SPDX-License-Identifier: Apache-2.0
#include "server/target/record_listeners.hpp"

#include <utility>
#include <vector>

#include <sys/epoll.h>

#include "ptrace/source/probe.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {

using tracee::Process;
using tracee::Thread;

Result<void> RecordListeners::listen(const TailListening& options) {
  tracee::UniqueFd events{::epoll_create1(EPOLL_CLOEXEC)};
  if (!events) return fail_errno("epoll");
  BT_TRY(tails_, TailServer::listen(options));
  for (const int fd : {engine_.event_fd(), tails_->fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(events.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno("epoll");
  }
  events_ = std::move(events);
  return {};
}

void RecordListeners::serve_tails() {
  if (!tails_) return;
  if (tails_->poll()) attach_tails();
  if (tails_->take_due()) hand_on();
  if (tails_stream_ && !tails_->anybody_listens()) {
    tails_stream_ = false;
    end_streams();
  }
  if (tails_->has_clients()) {
    tails_->tell_ends([this](ThreadId id) { return engine_.find(id) != nullptr; },
                      [this](pid_t pid) { return engine_.find(pid) != nullptr; });
  }
}

void RecordListeners::follow_stores() {
  stores_.follow(engine_);
  if (stores_stream_ && !has_stores()) {
    stores_stream_ = false;
    end_streams();
  }
}

void RecordListeners::hand_on() {
  if (!tails_ || !tails_->has_clients()) return;
  for (Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (!thread->trace()) continue;
      if (thread->stopped() || thread->trace()->wake_fd() < 0) thread->trace()->flush();
    }
  }
}

void RecordListeners::finish() {
  constexpr int kPatienceMs = 1000;
  serve_tails();
  if (tails_) tails_->finish(kPatienceMs);
}

void RecordListeners::follow(ThreadId thread) {
  attach_tails();
  follow_with_stores(thread);
}

void RecordListeners::follow_unasked(Thread& thread) {
  if (tails_ && tails_->has_clients()) {
    tails_->attach(thread.id(), thread.trace()->hub());
    (void)engine_.stream_trace(thread.id());
  }
  if (stores_.any()) follow_with_stores(thread.id());
}

Result<void> RecordListeners::feed_stores(ThreadId thread, bool every_record) {
  Thread* found = engine_.find(thread);
  if (found == nullptr || !found->trace()) return {};
  if (!every_record && tracee::is_hardware(found->trace()->source().kind())) return {};
  stores_stream_ = true;
  return engine_.stream_trace(thread);
}

void RecordListeners::attach_tails() {
  if (!tails_) return;
  (void)tails_->poll();  // Clients that have connected meanwhile are attached too.
  if (!tails_->has_clients()) return;
  std::vector<ThreadId> recorded;
  for (Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (!thread->trace()) continue;
      tails_->attach(thread->id(), thread->trace()->hub());
      recorded.push_back(thread->id());
    }
  }
  tails_stream_ = true;
  // A source that cannot stream marks its losses as gaps.
  for (const ThreadId id : recorded) (void)engine_.stream_trace(id);
}

void RecordListeners::follow_with_stores(ThreadId thread) {
  stores_.follow(engine_);
  // A process store that is not configured must not be made here: it would request every record.
  if (Process* process = engine_.find(thread.pid); process != nullptr && stores_.any()) {
    decoder::BranchStore& store = stores_.of(*process);
    const auto status = store.status();
    if (!status) return;
    if (status->config.level != decoder::StoreLevel::kUser && !engine_.see_kernel(thread)) {
      store.note_missing(static_cast<std::uint32_t>(thread.tid));
    }
    if (status->config.sched) (void)engine_.mark_switches(thread);
    (void)feed_stores(thread, status->config.overflow == decoder::StoreOverflow::kStream);
  }
}

bool RecordListeners::has_stores() {
  if (stores_.any()) return true;
  for (Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->trace() && thread->trace()->has_store()) return true;
    }
  }
  return false;
}

void RecordListeners::end_streams() {
  if (tails_stream_ || stores_stream_) return;
  for (Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->trace()) thread->trace()->source().end_stream();
    }
  }
}

}  // namespace backtrail::server
