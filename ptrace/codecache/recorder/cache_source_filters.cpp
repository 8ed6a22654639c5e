// SPDX-License-Identifier: Apache-2.0
// Threads that install a seccomp filter, which also judges the calls of translated code.

#include <utility>

#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

/// Returns the number of filters in force; nullopt if the kernel does not tell.
std::optional<int> filters_of(pid_t tid) {
  const auto status = ProcFs{}.status(tid);
  return status ? status->seccomp_filters : std::nullopt;
}

}  // namespace

void CacheSource::begin_filter(Thread& thread, const arch::cpu::UserRegs& regs) {
  const TraceeAddr described{regs[arch::cpu::UserReg::kRdx]};
  filter_call_ = FilterCall{.filter = cache::read_filter(process_, described),
                            .before = filters_of(thread.tid())};
  const auto& space = process_.cache_space;
  if (!filter_call_->filter || !space || space->disabled()) return;
  SeccompFilters filters = process_.filters;
  filters.add(*filter_call_->filter);
  if (const std::string why = cache::why_not_behind(filters); !why.empty()) {
    disable(why);
  } else if (!cache::allow_protected_pages(filters)) {
    (void)space->unprotect_all(thread);
    space->keep_unprotected(true);  // never undone
  }
}

void CacheSource::end_filter(Thread& thread) {
  const auto call = std::exchange(filter_call_, std::nullopt);
  if (!call) return;
  close_gate(false);
  waits_ = 0;
  const auto now = filters_of(thread.tid());
  const bool known = now && call->before;
  if (known && *now == *call->before) return;  // it has failed or has not begun
  const auto& space = process_.cache_space;
  if (known && call->filter && *now == *call->before + 1) {
    process_.filters.add(*call->filter);
    if (space) space->restrict_calls(process_.filters);
  } else if (space) {
    disable("a seccomp filter that is not known");
  }
}

bool CacheSource::filter_has_to_wait() {
  const auto& space = process_.cache_space;
  if (!filter_call_ || !space) {
    close_gate(false);
    return false;
  }
  close_gate(true);
  return space->anybody_inside() && ++waits_ < kMostWaits;
}

void CacheSource::close_gate(bool on) {
  if (std::exchange(closes_gate_, on) == on || !process_.cache_space) return;
  process_.cache_space->close_gate(on);
}

}  // namespace backtrail::tracee
