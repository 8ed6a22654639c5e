#include "server/record/ended_threads.hpp"

#include <utility>

#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::server {

void EndedThreads::add(tracee::Thread& thread) {
  constexpr std::uint64_t kShare = 4;
  const pid_t pid = thread.process().pid();
  const pid_t tid = thread.tid();
  auto trace = thread.trace() ? thread.trace()->take_ended(most_bytes_ / kShare) : nullptr;
  if (!trace) return;
  // A number that is used again names the newer thread.
  std::erase_if(threads_, [&](const Ended& known) {
    if (known.pid != pid || known.tid != tid) return false;
    bytes_ -= known.bytes;
    return true;
  });
  const std::uint64_t bytes = trace->bytes();
  bytes_ += bytes;
  threads_.push_back({.pid = pid,
                      .tid = tid,
                      .name = tracee::ProcFs{}.comm(tid).value_or(""),
                      .trace = std::move(trace),
                      .bytes = bytes});
  if (threads_.size() > kLong) shorten(threads_[threads_.size() - 1 - kLong], kShortBytes);
  while (threads_.size() > kMost || (bytes_ > most_bytes_ && threads_.size() > 1)) drop_oldest();
}

void EndedThreads::shorten(Ended& ended, std::uint64_t bytes) {
  ended.trace->shorten(bytes);
  bytes_ -= ended.bytes;
  ended.bytes = ended.trace->bytes();
  bytes_ += ended.bytes;
}

void EndedThreads::drop_oldest() {
  bytes_ -= threads_.front().bytes;
  threads_.pop_front();
}

void EndedThreads::forget(pid_t pid) {
  std::erase_if(threads_, [&](const Ended& ended) {
    if (ended.pid != pid) return false;
    bytes_ -= ended.bytes;
    return true;
  });
}

std::vector<EndedThreads::Ended*> EndedThreads::of(pid_t pid) {
  std::vector<Ended*> out;
  for (auto ended = threads_.rbegin(); ended != threads_.rend(); ++ended) {
    if (ended->pid == pid) out.push_back(&*ended);
  }
  return out;
}

}  // namespace backtrail::server
