// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/inline_calls.hpp"

#include <sys/syscall.h>

#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee::cache {

InlineCalls::InlineCalls(const Process& process, CacheMemory& memory)
    : process_{process}, memory_{memory}, calls_{inline_system_calls()} {
  restrict_inline_calls(calls_, process.filters);
  leave_out_mapping_calls(calls_);
  write_numbers(calls_, process.code_writers->watches_writes(), memory.policy());
  write_opens(memory.policy());
}

bool InlineCalls::restrict_to(const SeccompFilters& filters) {
  Calls calls = calls_;
  restrict_inline_calls(calls, filters);
  return change(calls);
}

bool InlineCalls::note_limit() {
  Calls calls = calls_;
  leave_out_mapping_calls(calls);
  return change(calls);
}

void InlineCalls::watch_writes() {
  write_numbers(calls_, true, memory_.policy());
}

bool InlineCalls::change(const Calls& calls) {
  if (calls_ == calls) return false;
  calls_ = calls;
  write_numbers(calls_, process_.code_writers->watches_writes(), memory_.policy());
  return true;
}

void InlineCalls::leave_out_mapping_calls(Calls& calls) const {
  if (!process_.address_limit.counts_ours()) return;
  for (const auto number : {SYS_brk, SYS_mmap}) {
    calls.at(static_cast<std::size_t>(number)) = arch::cpu::translate::CallCheck::kNever;
  }
}

}  // namespace backtrail::tracee::cache
