// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The recorder's knowledge of the program's code.

#include <functional>
#include <optional>
#include <utility>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {

/// Answers about native addresses. All functions are set, except where it says otherwise.
struct CodeFacts {
  /// Returns the reason if the instruction at an address must be left to the CPU; otherwise kNone.
  std::function<arch::cpu::translate::UntranslatableReason(TraceeAddr)> left_to_cpu;
  /// Returns a range [begin, end) around an address, or an empty one, in which no instruction is
  /// left to the CPU, no rseq critical section begins, and may_change() returns what it does for
  /// that address. May be empty.
  std::function<std::pair<TraceeAddr, TraceeAddr>(TraceeAddr)> undisturbed = {};
  /// Returns true if the program may write the code at any time without the recorder noticing.
  std::function<bool(TraceeAddr)> may_change;
  /// Returns true if the code is in no file, or was patched: other processes have other code there.
  std::function<bool(TraceeAddr)> made_here;
  /// Called before code that the program may have written is translated.
  std::function<void(TraceeAddr)> look_again;
  /// Returns true if the code is in a file without rseq critical sections. Sections that are not
  /// known yet are found by misses within them, which translating ahead would prevent. May be
  /// empty: false.
  std::function<bool(TraceeAddr)> has_no_sections = {};
  /// Returns the pointer at an address of the program's memory, nullopt if there is none. May be
  /// empty.
  std::function<std::optional<TraceeAddr>(TraceeAddr)> pointer_at = {};
};

/// Answers about a program that does not run, for its translation ahead. All functions are set.
struct AheadFacts {
  /// Returns to what the dynamic linker will set the pointer at an address, nullopt if it is not
  /// known.
  std::function<std::optional<TraceeAddr>(TraceeAddr)> pointer_at;
  /// Returns true if a function begins at an address.
  std::function<bool(TraceeAddr)> is_function;
};

}  // namespace backtrail::tracee::cache
