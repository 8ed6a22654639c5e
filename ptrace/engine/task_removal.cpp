// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/task_removal.hpp"

#include <cerrno>
#include <csignal>

#include "ptrace/engine/vfork_breakpoints.hpp"
#include "ptrace/tracee/launch.hpp"

namespace backtrail::tracee {

void TaskRemoval::remove_thread(Thread& thread) {
  const bool ctrl_c = CtrlC::take(thread);
  thread.cpu_pin()->release();
  tasks_.remove_thread(thread);
  if (ctrl_c) runner_.interrupt();
}

void TaskRemoval::remove_process(pid_t pid) {
  Process* process = tasks_.find(pid);
  if (process == nullptr) return;
  return_breakpoints(*process, tasks_, conditions_);
  leaving_.erase(pid);
  bool ctrl_c = ctrl_c_.due();
  for (const auto& thread : process->threads()) ctrl_c = CtrlC::take(*thread) || ctrl_c;
  conditions_.forget(pid);
  tasks_.remove_process(pid);
  if (ctrl_c) runner_.interrupt();  // by a thread of another process, if there is one
  // A process that was let go may still read from the terminal.
  if (tasks_.processes().empty() && ::kill(pid, 0) != 0 && errno == ESRCH) take_terminal_back();
}

void TaskRemoval::note_terminal_owner(pid_t group) {
  if (!terminal_owner_) terminal_owner_ = group;
}

void TaskRemoval::take_terminal_back() {
  if (terminal_owner_) set_terminal_foreground(*terminal_owner_);
  terminal_owner_.reset();
}

}  // namespace backtrail::tracee
