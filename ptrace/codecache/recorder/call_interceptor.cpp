// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/call_interceptor.hpp"

#include <utility>

#include "ptrace/codecache/recorder/lock_calls.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

CallInterceptor::CallInterceptor(Process& process, bool keeps_translations,
                                 const DisableSpace& disable)
    : process_{process},
      keeps_translations_{keeps_translations},
      disable_{disable},
      filter_{process, disable},
      limit_{process, keeps_translations},
      removal_{process, disable},
      own_memory_{process, removal_, disable},
      tracing_{process} {}

CallInterceptor::Next CallInterceptor::prepare(Thread& thread, const SourceResume& how) {
  filter_.cancel();
  if (removal_.has_to_wait(thread)) return Next::kWait;
  if (how.signal != 0) return Next::kGo;
  remove_left_memory(thread);
  switch (own_memory_.begin(thread)) {
    case OwnMemoryCalls::Found::kWait:
      return Next::kWait;
    case OwnMemoryCalls::Found::kMade:
      return Next::kGoElsewhere;
    case OwnMemoryCalls::Found::kNone:
      break;
  }
  if (!process_.reports_tracing) return Next::kGo;
  switch (tracing_.begin(thread)) {
    case TracingCalls::Found::kRequest:
      return Next::kRequest;
    case TracingCalls::Found::kMade:
      return Next::kGoElsewhere;
    case TracingCalls::Found::kNone:
      break;
  }
  return Next::kGo;
}

void CallInterceptor::begin(Thread& thread, const arch::cpu::UserRegs& regs,
                            const SourceResume& how, const ThreadMemory* memory) {
  const SyscallEffect effect = effect_of(regs);
  if (const auto kept = keeps_core(regs)) process_.asked.not_to_be_dumped = !*kept;
  if (effect == SyscallEffect::kFilter) filter_.begin(thread, regs);
  if (how.signal == 0) {
    removal_.begin(regs);
    limit_.begin(thread, regs, memory, how.syscalls, changed_);
  }
  const bool unseen = how.signal == 0 && !how.syscalls && process_.filters.empty();
  if (effect == SyscallEffect::kLocksAll && unseen) {
    const auto changed = lock_program_memory(thread, regs, keeps_translations_);
    if (changed) (void)changed_.begin(thread, regs, *changed);
  }
  begin_effect(effect, regs);
}

void CallInterceptor::begin_other_form(Thread& thread) {
  if (process_.cache_space) (void)process_.cache_space->protection().unprotect_all(thread);
  mappings_ = any_mapping_change();
  change_mappings(*mappings_);
  for (CacheSpace* space : spaces_in_memory_of(process_)) space->segv_action().changed();
}

void CallInterceptor::begin_effect(SyscallEffect effect, const arch::cpu::UserRegs& regs) {
  switch (effect) {
    case SyscallEffect::kNone:
    case SyscallEffect::kFilter:
    case SyscallEffect::kAddressLimit:
    case SyscallEffect::kLocksAll:
    case SyscallEffect::kOpens:
    case SyscallEffect::kTruncates:
    case SyscallEffect::kWrites:
    case SyscallEffect::kWritesMemory:
    case SyscallEffect::kWritesLater:
    case SyscallEffect::kTraces:
      break;
    case SyscallEffect::kMappings:
      // Once before the call, for other threads, and once after it, for what they saw meanwhile.
      mappings_ = mapping_change_of(regs);
      change_mappings(*mappings_);
      break;
    case SyscallEffect::kSandbox:
      if (process_.cache_space) disable_("the program restricts or redirects system calls");
      break;
    case SyscallEffect::kSegvAction:
      // Processes that share memory may share the actions, too.
      for (CacheSpace* space : spaces_in_memory_of(process_)) space->segv_action().changed();
      break;
  }
}

void CallInterceptor::change_mappings(const MappingChange& change) {
  for (CacheSpace* space : spaces_in_memory_of(process_)) space->change_mappings(change);
}

bool CallInterceptor::has_to_wait(Thread& thread, const SourceResume& how) {
  if (how.signal != 0 || !filter_.has_to_wait()) return false;
  changed_.end(thread);
  limit_.end(thread);
  filter_.cancel();
  return true;
}

void CallInterceptor::end(Thread& thread) {
  changed_.end(thread);
  limit_.end(thread);
  filter_.end(thread);
}

bool CallInterceptor::takes_request(const WaitStatus& status) {
  if (tracing_.request() != 0 && status.is_interrupt_stop()) return true;
  tracing_.forget();
  return false;
}

bool CallInterceptor::repeats(Thread& thread, const WaitStatus& status) {
  if (const auto change = std::exchange(mappings_, std::nullopt)) change_mappings(*change);
  return removal_.is_wanted(thread, status);
}

void CallInterceptor::forget() {
  filter_.release();
  limit_.forget();
  changed_.forget();
  removal_.forget();
  tracing_.forget();
  mappings_.reset();
}

}  // namespace backtrail::tracee::cache
