// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The process or thread that an error is about (Error::detail).

#include <cstdint>

#include <sys/types.h>

namespace backtrail::tracee {

[[nodiscard]] constexpr std::uint64_t as_detail(pid_t id) {
  return static_cast<std::uint64_t>(id);
}

}  // namespace backtrail::tracee
