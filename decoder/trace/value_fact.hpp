// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A value that was recorded while the program ran, or what its code or its memory was.

#include <cstdint>

#include "arch/base/address.hpp"
#include "arch/base/value_kind.hpp"

namespace backtrail::decoder {

/// Before the instruction at `pc` a register, or memory that the instruction overwrites, had the
/// value. Of code (arch::is_of_code): from this place on, until a later fact says otherwise, the
/// bytes at `pc` that the thread executes are those of the value, lowest first; of kind
/// arch::kCodeKind, it is not known what it executes in as many bytes as the value says. Of memory
/// (arch::is_of_memory): as many bytes as the value says, at `pc`.
struct ValueFact {
  /// The record that the place follows, with no other record in between. As passed to a consumer,
  /// it is counted backwards: 0 is the newest record that the consumer has received. Elsewhere it
  /// is the record's number.
  std::uint64_t record = 0;
  TraceeAddr pc;
  std::uint64_t value = 0;
  arch::ValueKind kind = 0;
  bool operator==(const ValueFact&) const = default;
};

}  // namespace backtrail::decoder
