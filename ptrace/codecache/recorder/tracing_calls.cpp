// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/tracing_calls.hpp"

#include <sys/ptrace.h>
#include <unistd.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/call_stop.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

bool is_our_child(pid_t pid) {
  const auto stat = ProcFs{}.stat(pid);
  return stat && stat->ppid == ::getpid();
}

}  // namespace

TracingCalls::Found TracingCalls::begin(Thread& thread) {
  request_ = 0;
  const auto regs = thread.user_regs();
  if (!regs || effect_of(*regs) != SyscallEffect::kTraces) return Found::kNone;
  if (!arch::cpu::is_syscall(process_.insn_bytes(regs->pc()))) return Found::kNone;
  if (syscall_argument(*regs, 0) == PTRACE_TRACEME) {
    if (!is_our_child(process_.pid())) {
      request_ = thread.tid();
    } else if (!process_.asked.to_be_traced && let_trace_itself(thread, *regs)) {
      return Found::kMade;
    }
  } else {
    const pid_t id = id_named_by(thread.tid(), syscall_argument(*regs, 1));
    const Process* target = process_.code_writers->find(id);
    // A process cannot trace itself.
    if (target != nullptr && target != &process_) request_ = id;
  }
  return request_ != 0 ? Found::kRequest : Found::kNone;
}

bool TracingCalls::let_trace_itself(Thread& thread, const arch::cpu::UserRegs& regs) {
  // A second call fails, as it should: the thread is traced.
  process_.asked.to_be_traced = true;
  return thread.set_user_regs(after_call(regs, 0)).has_value();
}

}  // namespace backtrail::tracee::cache
