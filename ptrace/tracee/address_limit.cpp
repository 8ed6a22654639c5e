// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/address_limit.hpp"

#include <algorithm>

#include "ptrace/os/resource_limits.hpp"

namespace backtrail::tracee {
namespace {

bool same(const rlimit& a, const rlimit& b) {
  return a.rlim_cur == b.rlim_cur && a.rlim_max == b.rlim_max;
}

/// Adds `bytes`. Infinity stays infinity, and no other limit becomes infinity.
rlim_t add(rlim_t limit, std::uint64_t bytes) {
  if (limit == RLIM_INFINITY) return limit;
  return limit + std::min<rlim_t>(bytes, RLIM_INFINITY - 1 - limit);
}

}  // namespace

bool AddressLimit::set(pid_t pid, const rlimit& limit) {
  if (::prlimit(pid, RLIMIT_AS, &limit, nullptr) != 0) return false;
  kernel_ = limit;
  return true;
}

void AddressLimit::leave_room(pid_t pid, std::uint64_t bytes) {
  bytes_ = bytes;
  const auto now = limit_of(pid, LimitedResource::kAddressSpace);
  if (!now) return;
  // If the kernel's limit changed meanwhile, another process has set the program's limit.
  if (!program_ || !same(*now, kernel_)) program_ = *now;
  kernel_ = *now;
  const rlimit wanted{add(program_->rlim_cur, bytes),
                      std::max(now->rlim_max, add(program_->rlim_max, kMostBytes))};
  const bool raised =
      now->rlim_cur >= wanted.rlim_cur || set(pid, wanted) ||
      (wanted.rlim_cur <= now->rlim_max && set(pid, {wanted.rlim_cur, now->rlim_max}));
  counts_ours_ = !raised;
  if (same(*program_, kernel_)) program_.reset();
}

rlimit AddressLimit::raised(const rlimit& wanted) const {
  if (wanted.rlim_cur > wanted.rlim_max) return wanted;  // EINVAL
  rlimit given{add(wanted.rlim_cur, bytes_), add(wanted.rlim_max, kMostBytes)};
  // If the program lowers its hard limit, it needs no permission, so the kernel's hard limit must
  // not rise.
  const bool lowers = wanted.rlim_max <= program_.value_or(kernel_).rlim_max;
  if (lowers) given.rlim_max = std::min(given.rlim_max, kernel_.rlim_max);
  given.rlim_cur = std::min(given.rlim_cur, given.rlim_max);
  return given;
}

void AddressLimit::note_set(pid_t pid, const rlimit& wanted, const rlimit& given) {
  program_ = wanted;
  kernel_ = given;
  leave_room(pid, bytes_);
}

bool AddressLimit::lower(pid_t pid) {
  bytes_ = 0;
  counts_ours_ = false;
  if (!program_) return true;
  const auto now = limit_of(pid, LimitedResource::kAddressSpace);
  if (now && same(*now, kernel_) && !set(pid, *program_)) return false;
  program_.reset();
  return true;
}

}  // namespace backtrail::tracee
