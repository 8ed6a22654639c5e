// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Breakpoints of processes that were killed, for children of theirs that nobody knew.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "ptrace/tracee/breakpoint_table.hpp"
#include "ptrace/tracee/tracee_memory.hpp"

namespace backtrail::tracee {

/// A process that is killed within fork() leaves a child whose memory has its breakpoints. The
/// child may show up later than the process's end.
class LeftBreakpoints {
 public:
  /// Processes remembered.
  static constexpr std::size_t kMost = 8;

  /// Call when a process with these breakpoints was killed.
  void note(const BreakpointTable& table);
  /// Puts the program's bytes back wherever the memory has one of the breakpoints.
  void lift_from(TraceeMemory& memory) const;

 private:
  using Breakpoints = std::vector<std::pair<TraceeAddr, std::uint8_t>>;
  /// The youngest first: of two with one address it is the likelier.
  std::deque<Breakpoints> left_;
};

}  // namespace backtrail::tracee
