// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The stack of a DWARF expression, and its arithmetic.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <elfutils/libdw.h>

namespace backtrail::decoder {

/// Values are 64 bits wide.
class ExpressionStack {
 public:
  void push(std::uint64_t value) { values_.push_back(value); }
  /// Returns nullopt if the stack is empty.
  std::optional<std::uint64_t> pop();
  /// Performs a constant, a stack operation, or arithmetic. Returns false for any other operation,
  /// and for one that fails: too few operands, a division by 0, a stack that grows too far.
  bool apply(const Dwarf_Op& op);

 private:
  bool constant(const Dwarf_Op& op);
  bool shuffle(const Dwarf_Op& op);
  bool unary(const Dwarf_Op& op);
  bool binary(const Dwarf_Op& op);
  bool copy(std::uint64_t depth);

  std::vector<std::uint64_t> values_;
};

}  // namespace backtrail::decoder
