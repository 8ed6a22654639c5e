// SPDX-License-Identifier: Apache-2.0
#include "server/record/ended_threads.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::server {

void EndedThreads::note_failure(const tracee::Thread& thread) {
  failing_.insert(thread.id());
}

void EndedThreads::add(tracee::Thread& thread) {
  constexpr std::uint64_t kShare = 4;
  const pid_t pid = thread.process().pid();
  const pid_t tid = thread.tid();
  const bool failed = failing_.erase(thread.id()) != 0;
  auto trace = thread.trace() ? thread.trace()->take_ended(most_bytes_ / kShare) : nullptr;
  if (!trace) return;
  // A tid that is used again belongs to the newer thread.
  std::erase_if(threads_, [&](const Ended& known) {
    if (known.pid != pid || known.tid != tid) return false;
    discount(known);
    return true;
  });
  const std::uint64_t bytes = trace->bytes();
  threads_.push_back({.pid = pid,
                      .tid = tid,
                      .name = tracee::ProcFs{}.comm(tid).value_or(""),
                      .trace = std::move(trace),
                      .bytes = bytes,
                      .failed = failed});
  count(threads_.back());
  bound();
}

void EndedThreads::bound() {
  if (threads_.size() > kLong) {
    Ended& next = threads_[threads_.size() - 1 - kLong];
    if (!next.failed) shorten(next, kShortBytes);
  }
  while (threads_.size() > kMost) (void)(drop_oldest(false, true) || drop_oldest(true, true));
  for (const bool failed : {false, true}) {
    shorten_oldest(failed);
    while (exceeds(failed) && drop_oldest(failed, false)) {
    }
  }
}

void EndedThreads::shorten(Ended& ended, std::uint64_t bytes) {
  ended.trace->shorten(bytes);
  discount(ended);
  ended.bytes = ended.trace->bytes();
  count(ended);
}

void EndedThreads::shorten_oldest(bool failed) {
  for (Ended& ended : threads_) {
    if (!exceeds(failed)) return;
    if (ended.failed == failed) shorten(ended, failed ? kFailedBytes : kShortBytes);
  }
}

bool EndedThreads::drop_oldest(bool failed, bool even_last) {
  const auto is_one = [failed](const Ended& ended) { return ended.failed == failed; };
  const auto oldest = std::find_if(threads_.begin(), threads_.end(), is_one);
  if (oldest == threads_.end() ||
      (!even_last && std::none_of(std::next(oldest), threads_.end(), is_one))) {
    return false;
  }
  discount(*oldest);
  threads_.erase(oldest);
  return true;
}

void EndedThreads::forget(pid_t pid) {
  std::erase_if(threads_, [&](const Ended& ended) {
    if (ended.pid != pid) return false;
    discount(ended);
    return true;
  });
  std::erase_if(failing_, [=](const tracee::ThreadId& id) { return id.pid == pid; });
}

std::vector<EndedThreads::Ended*> EndedThreads::of(pid_t pid) {
  std::vector<Ended*> out;
  for (auto ended = threads_.rbegin(); ended != threads_.rend(); ++ended) {
    if (ended->pid == pid) out.push_back(&*ended);
  }
  return out;
}

}  // namespace backtrail::server
