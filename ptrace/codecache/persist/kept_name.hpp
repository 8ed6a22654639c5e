// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Names of the persistent cache's files.

#include <string>
#include <string_view>

#include "ptrace/codecache/program/build_identity.hpp"

namespace backtrail::tracee::cache {

/// Returns the name of the file for a key: a hash of both arguments, and ".KIND". A file contains
/// its key and its build, so files whose names agree at worst replace each other. Those of two
/// builds have different names: who uses both in turns loses nothing.
[[nodiscard]] std::string kept_name(std::string_view key, std::string_view kind,
                                    std::string_view build = build_identity());

}  // namespace backtrail::tracee::cache
