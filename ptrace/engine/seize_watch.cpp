// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/seize_watch.hpp"

#include <chrono>

#include <sys/wait.h>

#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5};

}  // namespace

SeizeWatch::~SeizeWatch() {
  if (!helper_.joinable()) return;
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
  }
  is_over_.notify_one();
  helper_.join();
}

void SeizeWatch::begin() {
  if (!helper_.joinable()) helper_ = std::thread{[this] { watch(); }};
}

Result<void> SeizeWatch::seize(pid_t tid, unsigned long options) {
  ++begun_and_done_;
  auto seized = request::seize(tid, options);
  ++begun_and_done_;
  return seized;
}

std::vector<std::pair<pid_t, WaitStatus>> SeizeWatch::take_news() {
  const std::lock_guard lock{mutex_};
  return std::exchange(news_, {});
}

void SeizeWatch::watch() {
  unsigned seen = 0;
  std::unique_lock lock{mutex_};
  while (!is_over_.wait_for(lock, kLookEvery, [this] { return over_; })) {
    const unsigned now = begun_and_done_;
    const bool waits = now % 2 == 1 && now == seen;
    seen = now;
    if (!waits) continue;
    int raw = 0;
    // Waits for tracees of the tracing thread, too.
    for (pid_t tid = 0; (tid = ::waitpid(-1, &raw, __WALL | WNOHANG)) > 0;) {
      news_.emplace_back(tid, WaitStatus::decode(raw));
    }
  }
}

}  // namespace backtrail::tracee
