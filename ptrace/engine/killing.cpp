// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/killing.hpp"

#include <csignal>
#include <span>
#include <utility>
#include <vector>

#include <sys/ptrace.h>

#include "arch/base/log.hpp"
#include "ptrace/engine/send_kill.hpp"
#include "ptrace/engine/task_detail.hpp"
#include "ptrace/engine/trace_options.hpp"
#include "ptrace/os/ptrace_request.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::chrono::seconds kStopLimit{5};
/// Bounded, because the kernel may take longer to write a core of its own.
constexpr std::chrono::seconds kEndLimit{1};

}  // namespace

Result<void> Killing::kill(pid_t pid) {
  if (tasks_.find(pid) == nullptr) {
    if (events_.forget(pid)) return {};
    return fail(TraceErrc::kNotFound, "kill", as_detail(pid));
  }
  tasks_.find(pid)->client_kills = true;
  kill_untold_children(*tasks_.find(pid));
  // The process may have ended while its children did.
  if (Process* process = tasks_.find(pid)) {
    if (auto sent = send_kill(*process); !sent) {
      process->client_kills = false;
      return sent;
    }
    for (const auto& thread : process->threads()) {
      if (!thread->status().is_event(PTRACE_EVENT_EXIT) || !thread->stopped()) continue;
      events_.drop(*thread);
      runner_.set_going(*thread);
    }
  }
  const bool ended = waiter_.wait_until([&] { return tasks_.find(pid) == nullptr; }, kStopLimit);
  (void)events_.forget(pid);
  if (!ended) {
    log::ptrace().warn("pid={}: does not end after SIGKILL", pid);
    removal_.remove_process(pid);
  }
  ctrl_c_.drop_stale();
  return {};
}

void Killing::end_after(ThreadId id, int signal, const std::function<void()>& action) {
  stopper_.stop_process(id.pid);
  action();
  if (tasks_.find(id) == nullptr) return runner_.let_go_on(id.pid);
  const pid_t group = tasks_.find(id)->group();
  // Without this, each of them would resume first and stop once more at its end, for nothing.
  report_exits_of_others(id, false);
  const std::pair<ThreadId, ResumeAction> order{id, {.signal = signal}};
  runner_.resume(std::span{&order, 1});
  const auto ends = [&] {
    const Thread* thread = tasks_.find(id);
    return thread == nullptr || (thread->stopped() && thread->status().is_event(PTRACE_EVENT_EXIT));
  };
  const auto is_told = [&] {
    while (!ends() && waiter_.wait_one(id.tid)) {
    }
    return ends() || tasks_.find(id)->control().pending;
  };
  (void)waiter_.wait_until(is_told, kEndLimit);
  // The kernel does not end processes that share the memory.
  if (ends()) return runner_.let_go_on(id.pid, group);
  // The first process of a pid namespace ignores signals that would end others.
  report_exits_of_others(id, settings_.reported.exits);
  runner_.let_go_on(id.pid);
}

void Killing::kill_untold_children(const Process& process) {
  std::vector<pid_t> children;
  for (const auto& thread : process.threads()) {
    const Process* child = children_.of(*thread);
    if (child != nullptr) children.push_back(child->pid());
  }
  for (const pid_t child : children) (void)kill(child);
}

void Killing::report_exits_of_others(ThreadId id, bool on) {
  const Process* process = tasks_.find(id.pid);
  if (process == nullptr) return;
  const unsigned long options = (process->attached() ? kAttachOptions : kDefaultPtraceOptions) |
                                (on ? static_cast<unsigned long>(PTRACE_O_TRACEEXIT) : 0UL);
  for (const auto& thread : process->threads()) {
    if (thread->id() == id || !thread->stopped()) continue;
    (void)request::set_options(thread->tid(), options);
  }
}

}  // namespace backtrail::tracee
