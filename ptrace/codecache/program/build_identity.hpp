// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Identifies the running build of this program. Translations of another build must not be used.

#include <string>

namespace backtrail::tracee::cache {

/// Returns the build id of the running program; without one, size and modification time of its
/// file.
[[nodiscard]] const std::string& build_identity();

}  // namespace backtrail::tracee::cache
