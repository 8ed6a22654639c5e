// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/filter_calls.hpp"

#include <utility>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

/// Returns the number of filters in force; nullopt if the kernel does not tell.
std::optional<int> filters_of(pid_t tid) {
  const auto status = ProcFs{}.status(tid);
  return status ? status->seccomp_filters : std::nullopt;
}

}  // namespace

void FilterCalls::begin(Thread& thread, const arch::cpu::UserRegs& regs) {
  const TraceeAddr described{syscall_argument(regs, 2)};
  call_ = Call{.filter = read_filter(process_, described), .before = filters_of(thread.tid())};
  const auto& space = process_.cache_space;
  if (!call_->filter || !space || space->disabled()) return;
  SeccompFilters filters = process_.filters;
  filters.add(*call_->filter);
  if (const std::string why = why_not_behind(filters); !why.empty()) {
    disable_(why);
  } else if (!allow_protected_pages(filters)) {
    (void)space->protection().unprotect_all(thread);
    space->protection().keep_unprotected(true);  // never undone
  }
}

bool FilterCalls::has_to_wait() {
  const auto& space = process_.cache_space;
  if (!call_ || !space) {
    close_gate(false);
    return false;
  }
  close_gate(true);
  return wait_.has_to_go_on(space->threads().anybody_inside());
}

void FilterCalls::end(Thread& thread) {
  const auto call = std::exchange(call_, std::nullopt);
  if (!call) return;
  close_gate(false);
  wait_.end();
  const auto& space = process_.cache_space;
  switch (outcome(call->filter.has_value(), call->before, filters_of(thread.tid()))) {
    case Outcome::kSame:
      return;
    case Outcome::kInstalled:
      process_.filters.add(*call->filter);
      if (space) space->restrict_calls(process_.filters);
      return;
    case Outcome::kUnknown:
      if (space) disable_("a seccomp filter that is not known");
      return;
  }
}

FilterCalls::Outcome FilterCalls::outcome(bool is_read, std::optional<int> before,
                                          std::optional<int> now) {
  if (!before || !now) return Outcome::kUnknown;
  if (*now == *before) return Outcome::kSame;
  return is_read && *now == *before + 1 ? Outcome::kInstalled : Outcome::kUnknown;
}

void FilterCalls::release() {
  close_gate(false);
  call_.reset();
}

void FilterCalls::close_gate(bool on) {
  if (std::exchange(closes_gate_, on) == on || !process_.cache_space) return;
  process_.cache_space->close_gate(on);
}

}  // namespace backtrail::tracee::cache
