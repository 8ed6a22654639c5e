// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Deduces bits from the relation of a MicroOp, in every direction.

#include <cstdint>
#include <span>

#include "arch/x86/values/insn_model.hpp"
#include "arch/x86/values/known.hpp"

namespace backtrail::arch::x86::values {

/// A MicroOp without its refs.
struct Relation {
  Op op;
  std::uint8_t width, p, q;
};

/// Adds to `v` (the op's values, in the order of its refs) bits that the relation implies. Adds
/// only bits that follow, but not necessarily all of them.
/// @return false if the values contradict the relation.
bool deduce(const Relation& relation, std::span<Known> v);

}  // namespace backtrail::arch::x86::values
