// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The execution between two places of a program, by native stepping and from the trace.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/gdb_session.hpp"

namespace backtrail::test {

/// Instructions [first, last] of a run up to the next call, return or other switch of function;
/// counted from 1, like `record function-call-history /i`.
struct Stretch {
  std::string function;
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const Stretch&) const = default;
};

/// Prints "name first,last" in messages.
void PrintTo(const Stretch& stretch, std::ostream* out);

/// The entry into a function.
struct Entry {
  std::string function;
  std::uint64_t stack_pointer = 0;
};

struct Steps {
  std::uint64_t stack_pointer = 0;  ///< At the function's entry.
  std::vector<std::uint64_t> instructions;
  std::vector<Stretch> stretches;
  // Only from native steps:
  std::vector<Entry> entries;
  std::vector<std::string> backtrace;  ///< At the end, innermost first.
};

/// Steps `program` from `begin` to `end` with gdb alone. Both are locations of `break`; `end` is
/// not executed and may be a signal. Fails the test if gdb cannot do this.
Steps native_steps(const std::vector<std::string>& program, const std::string& begin,
                   const std::string& end);

/// Returns all that gdb's branch trace of the selected thread holds.
Steps recorded_steps(GdbSession& gdb);

/// Counts of instructions, functions and gaps from `info record`.
struct RecordedCounts {
  std::size_t instructions = 0;
  std::size_t functions = 0;
  std::size_t gaps = 0;
};
RecordedCounts recorded_counts(GdbSession& gdb);

/// Returns the first difference with some instructions around it; empty if there is none.
std::string difference(const std::vector<std::uint64_t>& expected,
                       const std::vector<std::uint64_t>& actual);

}  // namespace backtrail::test
