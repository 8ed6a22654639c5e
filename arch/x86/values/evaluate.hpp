// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Functions that are evaluated in one direction only, when all inputs are known.

#include <cstdint>
#include <span>

namespace backtrail::arch::x86::values {

enum class Function : std::uint8_t {
  kMulHigh,        ///< d = high half of a * b, unsigned, w bits.
  kMulHighSigned,  ///< d = high half of a * b, signed.
  kDivide,         ///< d = quotient of (b:a) / c; unsigned.
  kRemainder,
  kDivideSigned,
  kRemainderSigned,
  kTrailingZeros,  ///< d = trailing zeros of a; w for 0.
  kLeadingZeros,
  kPopCount,
  kScanForward,  ///< BSF; undefined for 0.
  kScanReverse,
  kRotateLeft,  ///< d = a rotated by b.
  kRotateRight,
  kDoubleLeft,  ///< d = SHLD of a, b by c.
  kDoubleRight,
  kByteMask,    ///< d = PMOVMSKB of the lanes a, b, (c, e): 8 bits per lane.
  kBytesEqual,  ///< d = PCMPEQB of the lanes a, b. The following work on one lane likewise.
  kWordsEqual,
  kDwordsEqual,
  kQwordsEqual,
  kBytesGreater,  ///< PCMPGTB
  kWordsGreater,
  kDwordsGreater,
  kBytesMinimum,            ///< PMINUB
  kBytesMaximum,            ///< PMAXUB
  kShuffleBytes,            ///< PSHUFB: d = lane picked by a's bytes out of the 16 bytes b, c.
  kMultiplyDwordsUnsigned,  ///< PMULUDQ of a lane.
  kTernary,     ///< VPTERNLOG of a lane: d = the bits that the truth table e gives for a, b, c.
  kTestFields,  ///< d = a bit for each element of the lanes a, b that passes the test c: coded().
  kXsaveBytes,  ///< d = xsave_bytes() of the components b:a that c has.
  kCompactedXsaveBytes,
};

/// A test of an element x of the first lane and an element y of the second one.
enum class FieldTest : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,  ///< x < y, as signed numbers.
  kNotLess,
  kGreater,
  kNotGreater,
  kBelow,  ///< x < y, as unsigned numbers.
  kNotBelow,
  kAbove,
  kNotAbove,
  kShareBits,  ///< (x & y) != 0
  kShareNone,
  kNever,
  kAlways,
};

/// Returns the third input of kTestFields for elements of `bits` bits.
[[nodiscard]] constexpr std::uint64_t coded(FieldTest test, unsigned bits) {
  return std::uint64_t{bits} << 8U | static_cast<std::uint64_t>(test);
}

/// @return false if the instruction would fault or its result is undefined.
[[nodiscard]] bool evaluate(Function function, unsigned width, std::span<const std::uint64_t> in,
                            std::uint64_t& out);

}  // namespace backtrail::arch::x86::values
