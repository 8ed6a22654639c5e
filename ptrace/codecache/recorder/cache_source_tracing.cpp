// SPDX-License-Identifier: Apache-2.0
// Programs that trace others: debuggers, strace, crash handlers.

#include <sys/ptrace.h>
#include <unistd.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;

bool stands_at_system_call(Process& process, TraceeAddr pc) {
  return arch::cpu::is_syscall(process.insn_bytes(pc));
}

bool is_our_child(pid_t pid) {
  const auto stat = ProcFs{}.stat(pid);
  return stat && stat->ppid == ::getpid();
}

}  // namespace

bool CacheSource::asks_to_trace(Thread& thread) {
  trace_request_ = 0;
  const auto regs = thread.user_regs();
  if (!regs || cache::effect_of(*regs) != cache::SyscallEffect::kTraces) return false;
  if (!stands_at_system_call(process_, regs->pc())) return false;
  if ((*regs)[UserReg::kRdi] == PTRACE_TRACEME) {
    if (!is_our_child(process_.pid())) {
      trace_request_ = thread.tid();
    } else if (!process_.asked_to_be_traced) {
      let_trace_itself(thread, *regs);
    }
  } else {
    const pid_t id = cache::id_named_by(thread.tid(), (*regs)[UserReg::kRsi]);
    const Process* target = process_.code_writers->find(id);
    // A process cannot trace itself.
    if (target != nullptr && target != &process_) trace_request_ = id;
  }
  return trace_request_ != 0;
}

void CacheSource::let_trace_itself(Thread& thread, const arch::cpu::UserRegs& regs) {
  // A second call fails, as it should: the thread is traced.
  process_.asked_to_be_traced = true;
  arch::cpu::UserRegs after = regs;
  after[UserReg::kRax] = 0;
  after[UserReg::kRip] += arch::cpu::kSyscallInsnBytes;
  after[UserReg::kRcx] = after[UserReg::kRip];
  after[UserReg::kR11] = regs[UserReg::kEflags];
  after[UserReg::kOrigRax] = arch::cpu::kNoSystemCall;
  if (thread.set_user_regs(after)) moved_to(after.pc());
}

}  // namespace backtrail::tracee
