// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What is known of a forked child's executable memory before it runs: it is its parent's.

#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// Valid until a thread of the child runs.
struct InheritedCode {
  ExecutableMap executable;
  CodeModules modules;
  /// Addresses of the parent's recorder memory. The child has nothing there.
  MemoryPlaces places;
};

}  // namespace backtrail::tracee::cache
