// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/ctrl_c.hpp"

#include <csignal>
#include <tuple>
#include <utility>

namespace backtrail::tracee {
namespace {

void mark(Thread& thread) {
  thread.control().client_stop = true;
  thread.control().client_stop_signal = SIGINT;
}

}  // namespace

/// Prefers leaders, which usually live longest; among several processes, the first.
Thread* CtrlC::choose() const {
  const auto rank = [](const ThreadId& id) { return std::tuple{id.pid, id.tid != id.pid, id.tid}; };
  Thread* chosen = nullptr;
  for (const auto& [tid, thread] : tasks_.threads()) {
    const ThreadControl& control = thread->control();
    if (!control.resumed || control.pending || thread->process().hidden) continue;
    if (control.zombie) continue;
    if (control.vfork_parent && !thread->stopped()) continue;
    if (chosen == nullptr || rank(thread->id()) < rank(chosen->id())) chosen = thread;
  }
  return chosen;
}

Thread* CtrlC::ask() {
  Thread* chosen = choose();
  due_ = chosen == nullptr && !tasks_.known().empty();
  if (chosen != nullptr) mark(*chosen);
  return chosen;
}

void CtrlC::offer(Thread& thread) {
  if (!due_ || !thread.control().resumed || thread.process().hidden) return;
  due_ = false;
  mark(thread);
}

bool CtrlC::take(Thread& thread) {
  ThreadControl& control = thread.control();
  const bool asked = std::exchange(control.client_stop, false);
  return std::exchange(control.client_stop_signal, 0) != 0 && asked;
}

void CtrlC::forget() {
  due_ = false;
  for (const auto& [tid, thread] : tasks_.threads()) {
    if (thread->control().client_stop_signal != 0) (void)take(*thread);
  }
}

void CtrlC::drop_stale() {
  if (!tasks_.any_running()) due_ = false;
}

}  // namespace backtrail::tracee
