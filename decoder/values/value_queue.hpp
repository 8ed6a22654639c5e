// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The work list of the solver: parts of the graph to be looked at again, because a bit of a
/// variable of theirs has become known.

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "decoder/values/stack_links.hpp"
#include "decoder/values/value_graph.hpp"

namespace backtrail::decoder::values {

class ValueQueue {
 public:
  /// Kinds of items, in the order of their numbers.
  enum class Kind : std::uint8_t { kNode, kAccess, kCall, kFrame, kLink };
  struct Item {
    Kind kind = Kind::kNode;
    std::uint32_t index = 0;  ///< Among those of its kind.
  };

  /// Enqueues every item, the last one first. Borrows the graph.
  ValueQueue(ValueGraph& graph, const std::vector<StackLink>& links);

  /// Adds an item, unless it waits already.
  void enqueue(Kind kind, std::uint32_t index) {
    enqueue(first_[static_cast<unsigned>(kind)] + index);
  }
  /// Removes the oldest item; nullopt if there is none.
  [[nodiscard]] std::optional<Item> next();
  /// Notes bits of a variable. If one of them is new, enqueues the items that use the variable. If
  /// one contradicts a known bit, the graph is inconsistent.
  void learn(Var var, std::uint64_t value, std::uint64_t mask);

 private:
  void enqueue(std::uint32_t number);
  void index_uses(const std::vector<StackLink>& links);

  ValueGraph& graph_;
  std::array<std::uint32_t, 5> first_{};  ///< Number of the first item, by kind.
  std::vector<std::uint32_t> first_use_;  ///< Index into uses_, by variable.
  std::vector<std::uint32_t> uses_;
  std::vector<bool> queued_;
  std::deque<std::uint32_t> queue_;
};

}  // namespace backtrail::decoder::values
