#pragma once
/// @file
/// What ran between two places of a program, told by stepping it natively and told by the trace.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/gdb_session.hpp"

namespace backtrail::test {

/// Instructions [first, last] of a run that belong to one call, return or switch of function;
/// counted from 1, as `record function-call-history /i` counts.
struct Stretch {
  std::string function;
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const Stretch&) const = default;
};

/// "name first,last", for messages.
void PrintTo(const Stretch& stretch, std::ostream* out);

/// A function begins.
struct Entry {
  std::string function;
  std::uint64_t stack_pointer = 0;
};

struct Steps {
  std::uint64_t stack_pointer = 0;  ///< At the beginning.
  std::vector<std::uint64_t> instructions;
  std::vector<Stretch> stretches;
  // Of native steps only:
  std::vector<Entry> entries;
  std::vector<std::string> backtrace;  ///< At the end, the innermost first.
};

/// Steps `program` from `begin` to `end` (locations as `break` takes them; `end` is not executed,
/// and may be a signal) with gdb alone. Fails the test when that does not work.
Steps native_steps(const std::vector<std::string>& program, const std::string& begin,
                   const std::string& end);

/// All that gdb's branch trace of the selected thread holds.
Steps recorded_steps(GdbSession& gdb);

/// Instructions and functions, as `info record` counts them.
struct RecordedCounts {
  std::size_t instructions = 0;
  std::size_t functions = 0;
  std::size_t gaps = 0;
};
RecordedCounts recorded_counts(GdbSession& gdb);

/// Where the first difference is, with some instructions around it; empty when there is none.
std::string difference(const std::vector<std::uint64_t>& expected,
                       const std::vector<std::uint64_t>& actual);

}  // namespace backtrail::test
