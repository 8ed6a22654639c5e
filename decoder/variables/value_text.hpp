// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes the value of an object as text, much like gdb.

#include <optional>
#include <string>

#include <elfutils/libdw.h>

#include "decoder/variables/location.hpp"

namespace backtrail::decoder {

/// Limits of one value.
inline constexpr std::size_t kMostMembers = 10;     ///< Parts shown of a struct or array.
inline constexpr std::size_t kMostCharacters = 64;  ///< Shown of a string.
inline constexpr std::size_t kLongestValue = 240;   ///< In bytes.
inline constexpr unsigned kDeepestValue = 3;        ///< Structs within structs.

struct ValueContext {
  FrameState& state;
  WorkLimit& work;
  /// Show what references refer to. Optimised code may not have stored it yet.
  bool follow_references = true;
};

/// Returns nullopt if the value is not known or its type cannot be shown: complex numbers, long
/// double, 128-bit integers, pointers to members. In structs and arrays such parts are "?"; nullopt
/// if nothing else is in them. The text is not escaped except for characters of strings.
/// @param object  Begins where the object begins.
[[nodiscard]] std::optional<std::string> value_text(const Dwarf_Die& type,
                                                    const ObjectBytes& object,
                                                    const ValueContext& context);

/// Returns a character of a string as C writes it. Bytes of UTF-8 are left alone.
[[nodiscard]] std::string escaped_character(std::uint8_t c, char quote);

}  // namespace backtrail::decoder
