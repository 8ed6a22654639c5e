// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds loads of what was stored at the same place on the stack, although nobody knows yet where
/// the stack is: registers that a function saves and restores, arguments and variables.

#include <cstdint>
#include <vector>

#include "decoder/values/value_graph.hpp"

namespace backtrail::decoder::values {

/// Two accesses to the same bytes. They are equal unless one of `suspects` wrote there.
struct StackLink {
  std::uint32_t earlier = 0;  ///< A store, or a load after a store.
  std::uint32_t later = 0;    ///< A load of the same size at the same distance from the stack.
  /// The stores in between whose addresses have no known distance from the stack, in order.
  std::vector<std::uint32_t> suspects;
};

/// Returns the links of all accesses whose address is, by the instructions, the stack pointer of
/// some step plus a constant. Those with many stores in between are left out.
///
/// A link holds only in memory that nothing but the trace's stores and system calls writes.
/// @param from  The first step whose accesses are considered.
[[nodiscard]] std::vector<StackLink> stack_links(const ValueGraph& graph, std::size_t from);

}  // namespace backtrail::decoder::values
