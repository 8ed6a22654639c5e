// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/time_slice.hpp"

#include <chrono>
#include <optional>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

/// struct sched_attr as of Linux 4.8 (uapi/linux/sched/types.h), which glibc 2.36 does not declare.
struct SchedAttr {
  std::uint32_t size = sizeof(SchedAttr);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  ///< The slice under SCHED_OTHER, since Linux 6.12.
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedAttr) == 48);

constexpr std::chrono::nanoseconds kSlice = std::chrono::milliseconds{10};

/// Returns the calling thread's attributes if its policy is SCHED_OTHER.
std::optional<SchedAttr> own_attributes() {
  SchedAttr now;
  if (::syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0) return std::nullopt;
  return now.policy == SCHED_OTHER ? std::optional{now} : std::nullopt;
}

bool set_slice(SchedAttr attributes, std::uint64_t slice_ns) {
  attributes.runtime_ns = slice_ns;
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

}  // namespace

void TimeSlice::lengthen() {
  if (longer_) return;
  const auto now = own_attributes();
  if (!now) return;
  longer_ = set_slice(*now, kSlice.count());
  before_ns_ = now->runtime_ns;
}

void TimeSlice::restore() {
  if (!longer_) return;
  longer_ = false;
  if (const auto now = own_attributes()) (void)set_slice(*now, before_ns_);
}

}  // namespace backtrail::tracee
