#pragma once
/// @file
/// Which build of this program is running: translations of another one are not to be used.

#include <string>

namespace backtrail::tracee::cache {

/// The running program's build-id (without one: its file's size and time of change), the kernel and
/// its version (the vdso is its).
[[nodiscard]] const std::string& build_identity();

}  // namespace backtrail::tracee::cache
