// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The time slice of the calling thread, as the kernel shows it (sched_getattr(2)).

#include <array>
#include <cstdint>

#include <sys/syscall.h>
#include <unistd.h>

namespace backtrail::test {

/// Returns it in ns; 0 if the kernel knows none of a thread's own (before Linux 6.12).
inline std::uint64_t own_slice() {
  std::array<std::uint64_t, 6> attributes{};  // struct sched_attr; sched_runtime is at 24
  if (::syscall(SYS_sched_getattr, 0, attributes.data(), sizeof attributes, 0) != 0) return 0;
  return attributes[3];
}

}  // namespace backtrail::test
