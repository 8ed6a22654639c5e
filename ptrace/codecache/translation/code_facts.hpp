// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What the recorder knows of the program's code.

#include <functional>

#include "arch/base/address.hpp"
#include "arch/x86/translate/superblock.hpp"

namespace backtrail::tracee::cache {

/// Answers about native addresses. All functions are set.
struct CodeFacts {
  /// Why the instruction at an address is to be left to the CPU; kNone for most.
  std::function<arch::x86::translate::Special(TraceeAddr)> left_to_cpu;
  /// Whether the program may write the code at any time without the recorder noticing.
  std::function<bool(TraceeAddr)> may_change;
  /// Whether the code is in no file: no other process has the same code there.
  std::function<bool(TraceeAddr)> made_here;
  /// Called before code is translated that may have changed.
  std::function<void(TraceeAddr)> look_again;
};

}  // namespace backtrail::tracee::cache
