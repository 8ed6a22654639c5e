// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The recorder's knowledge of the program's code.

#include <functional>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {

/// Answers about native addresses. All functions are set.
struct CodeFacts {
  /// Returns the reason if the instruction at an address must be left to the CPU; otherwise kNone.
  std::function<arch::cpu::translate::UntranslatableReason(TraceeAddr)> left_to_cpu;
  /// Returns true if the program may write the code at any time without the recorder noticing.
  std::function<bool(TraceeAddr)> may_change;
  /// Returns true if the code is in no file: other processes have other code there.
  std::function<bool(TraceeAddr)> made_here;
  /// Called before code that the program may have written is translated.
  std::function<void(TraceeAddr)> look_again;
};

}  // namespace backtrail::tracee::cache
