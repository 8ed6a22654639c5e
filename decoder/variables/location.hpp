// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Evaluates DWARF expressions: where a variable is, and the bytes found there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <elfutils/libdw.h>

#include "decoder/variables/frame_state.hpp"
#include "decoder/variables/work_limit.hpp"

namespace backtrail::decoder {

/// A part of a variable's location.
struct LocationPiece {
  enum class Kind : std::uint8_t {
    kUnknown,
    kMemory,
    kRegister,
    kValue,  ///< The variable has no place, only a value of up to 8 bytes.
    kBytes,
  };
  Kind kind = Kind::kUnknown;
  std::uint64_t value = 0;  ///< Address, DWARF register number, or value.
  std::vector<std::uint8_t> bytes;
  std::size_t size = 0;  ///< In bytes; 0 for the whole variable.
};

/// The pieces of a variable in order; empty if its location is unknown.
using Location = std::vector<LocationPiece>;

struct ExpressionContext {
  FrameState& state;
  std::uint64_t bias = 0;  ///< Added to addresses of the file.
  /// Return nullopt if unknown; may be empty.
  std::function<std::optional<std::uint64_t>()> cfa;
  std::function<std::optional<std::uint64_t>()> frame_base;
  WorkLimit& work;
};

/// Evaluates a location expression. Operations on typed values, thread-local variables and
/// unknown registers or memory give an unknown location.
/// @param attribute  The attribute that `ops` come from; null for unwind rules.
[[nodiscard]] Location evaluate_location(std::span<const Dwarf_Op> ops, Dwarf_Attribute* attribute,
                                         const ExpressionContext& context);

/// Evaluates an expression whose result is a number; nullopt if it is not known.
/// @param initial  Value on the stack at the beginning.
[[nodiscard]] std::optional<std::uint64_t> evaluate_number(std::span<const Dwarf_Op> ops,
                                                           std::optional<std::uint64_t> initial,
                                                           const ExpressionContext& context);

/// The bytes of a variable, or of the part that is shown of it.
struct ObjectBytes {
  std::vector<std::uint8_t> bytes;
  std::vector<bool> known;               ///< As many as `bytes`.
  std::optional<std::uint64_t> address;  ///< Set if all bytes are in one place in memory.
};

/// Most bytes read of an object.
inline constexpr std::size_t kMostObjectBytes = 4096;

/// Reads `size` bytes, or kMostObjectBytes if that is less. Bytes that are unknown stay so.
[[nodiscard]] ObjectBytes read_object(const Location& location, std::size_t size,
                                      FrameState& state);

}  // namespace backtrail::decoder
