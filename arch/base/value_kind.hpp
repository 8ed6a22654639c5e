// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a recorded value is of, in one byte.

#include <bit>
#include <cstdint>
#include <optional>

namespace backtrail::arch {

/// A general register, by its encoding, below kOldBytesKind. From there on a part of the bytes that
/// a store overwrites, then kFlagsKind, code, and at last memory.
using ValueKind = std::uint8_t;

inline constexpr ValueKind kOldBytesKind = 16;
/// A store is recorded in parts of up to 8 bytes; the largest has this many.
inline constexpr unsigned kMostOldParts = 8;
/// The flags. They begin the values that are recorded of all registers where a signal is delivered.
inline constexpr ValueKind kFlagsKind = kOldBytesKind + 4 * kMostOldParts;
/// All kinds of values that translated code records are below this one.
inline constexpr ValueKind kValueKinds = kFlagsKind + 1;

/// These kinds tell what the program's code was: with kCodeKind the bytes are not known, with one
/// of the next eight kinds that many are.
inline constexpr ValueKind kCodeKind = kValueKinds;
inline constexpr unsigned kMostCodeBytes = 8;
/// These kinds tell since when memory of files that the program may not write has been what it is:
/// from the block of this record on, or from the next record on; or that it may change.
inline constexpr ValueKind kConstantKind = kCodeKind + 1 + kMostCodeBytes;
inline constexpr ValueKind kBecomesConstantKind = kConstantKind + 1;
inline constexpr ValueKind kVariableKind = kConstantKind + 2;
/// All kinds are below this one.
inline constexpr ValueKind kFactKinds = kVariableKind + 1;

/// The bytes from 8 * `part` on, counted from the address of the store, before the store.
struct OldBytes {
  std::uint8_t part = 0;
  std::uint8_t size = 0;  ///< 1, 2, 4 or 8 bytes.
};

[[nodiscard]] constexpr ValueKind kind_of(OldBytes old) {
  return static_cast<ValueKind>(kOldBytesKind + 4U * old.part +
                                static_cast<unsigned>(std::countr_zero(unsigned{old.size})));
}

[[nodiscard]] constexpr bool is_of_code(ValueKind kind) {
  return kind >= kCodeKind && kind < kConstantKind;
}

[[nodiscard]] constexpr bool is_of_memory(ValueKind kind) {
  return kind >= kConstantKind;
}

/// Returns the part of a store that a value is of; nullopt if it is of a register.
[[nodiscard]] constexpr std::optional<OldBytes> old_bytes_of(ValueKind kind) {
  if (kind < kOldBytesKind || kind >= kFlagsKind) return std::nullopt;
  const unsigned number = kind - kOldBytesKind;
  return OldBytes{static_cast<std::uint8_t>(number / 4),
                  static_cast<std::uint8_t>(1U << number % 4)};
}

}  // namespace backtrail::arch
