// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/values/evaluate.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "arch/x86/values/known.hpp"
#include "arch/x86/values/xsave_bytes.hpp"

namespace backtrail::arch::x86::values {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

std::int64_t sign_extended(std::uint64_t value, unsigned width) {
  const unsigned shift = 64 - width;
  return static_cast<std::int64_t>(value << shift) >> shift;
}

bool divide(std::uint64_t low, std::uint64_t high, std::uint64_t divisor, unsigned width,
            bool remainder, std::uint64_t& out) {
  const std::uint64_t all = low_bits(width);
  const Wide dividend = Wide{high & all} << width | (low & all);
  const Wide by = divisor & all;
  if (by == 0 || dividend / by > all) return false;
  out = static_cast<std::uint64_t>(remainder ? dividend % by : dividend / by);
  return true;
}

bool divide_signed(std::uint64_t low, std::uint64_t high, std::uint64_t divisor, unsigned width,
                   bool remainder, std::uint64_t& out) {
  const std::uint64_t all = low_bits(width);
  const Wide bits = Wide{static_cast<std::uint64_t>(sign_extended(high, width))} << width;
  Wide whole = bits | (low & all);
  if (width < 64 && sign_extended(high, width) < 0) whole |= ~Wide{0} << (2 * width);
  if (width == 64) whole = Wide{high} << 64U | low;
  const auto dividend = static_cast<SignedWide>(whole);
  const SignedWide by = sign_extended(divisor, width);
  if (by == 0) return false;
  if (by == -1 && whole == Wide{1} << 127U) return false;
  const SignedWide quotient = dividend / by;
  const SignedWide limit = SignedWide{1} << (width - 1);
  if (quotient >= limit || quotient < -limit) return false;
  out = static_cast<std::uint64_t>(remainder ? dividend % by : quotient) & all;
  return true;
}

/// Applies `f` to each field of `bits` bits.
template <typename F>
std::uint64_t fields(std::uint64_t a, std::uint64_t b, unsigned bits, F&& f) {
  std::uint64_t out = 0;
  for (unsigned at = 0; at < 64; at += bits) {
    out |= (f(a >> at & low_bits(bits), b >> at & low_bits(bits)) & low_bits(bits)) << at;
  }
  return out;
}

std::uint64_t equal_fields(std::uint64_t a, std::uint64_t b, unsigned bits) {
  return fields(a, b, bits, [](auto x, auto y) { return x == y ? ~std::uint64_t{0} : 0; });
}

std::uint64_t greater_fields(std::uint64_t a, std::uint64_t b, unsigned bits) {
  return fields(a, b, bits, [bits](auto x, auto y) {
    return sign_extended(x, bits) > sign_extended(y, bits) ? ~std::uint64_t{0} : 0;
  });
}

std::uint64_t byte_mask(std::span<const std::uint64_t> in) {
  std::uint64_t out = 0;
  for (std::size_t lane = 0; lane < in.size(); ++lane) {
    for (unsigned byte = 0; byte < 8; ++byte) {
      out |= (in[lane] >> (8 * byte + 7) & 1) << (8 * lane + byte);
    }
  }
  return out;
}

bool passes(FieldTest test, std::uint64_t x, std::uint64_t y, unsigned bits) {
  const auto less = [bits](std::uint64_t one, std::uint64_t other) {
    return sign_extended(one, bits) < sign_extended(other, bits);
  };
  switch (test) {
    case FieldTest::kEqual:
      return x == y;
    case FieldTest::kNotEqual:
      return x != y;
    case FieldTest::kLess:
      return less(x, y);
    case FieldTest::kNotLess:
      return !less(x, y);
    case FieldTest::kGreater:
      return less(y, x);
    case FieldTest::kNotGreater:
      return !less(y, x);
    case FieldTest::kBelow:
      return x < y;
    case FieldTest::kNotBelow:
      return x >= y;
    case FieldTest::kAbove:
      return x > y;
    case FieldTest::kNotAbove:
      return x <= y;
    case FieldTest::kShareBits:
      return (x & y) != 0;
    case FieldTest::kShareNone:
      return (x & y) == 0;
    case FieldTest::kNever:
      return false;
    case FieldTest::kAlways:
      return true;
  }
  return false;
}

std::uint64_t tested_fields(std::uint64_t a, std::uint64_t b, std::uint64_t how) {
  const auto bits = static_cast<unsigned>(how >> 8U);
  const auto test = static_cast<FieldTest>(how & 0xff);
  std::uint64_t out = 0;
  for (unsigned i = 0; i < 64 / bits; ++i) {
    const std::uint64_t x = a >> (i * bits) & low_bits(bits);
    const std::uint64_t y = b >> (i * bits) & low_bits(bits);
    if (passes(test, x, y, bits)) out |= std::uint64_t{1} << i;
  }
  return out;
}

/// Bit i of the table is the result for i = 4 * a + 2 * b + c.
std::uint64_t ternary(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t table) {
  std::uint64_t out = 0;
  for (unsigned i = 0; i < 8; ++i) {
    if ((table >> i & 1) == 0) continue;
    out |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return out;
}

std::uint64_t shuffled(std::uint64_t control, std::uint64_t low, std::uint64_t high) {
  std::uint64_t out = 0;
  for (unsigned byte = 0; byte < 8; ++byte) {
    const std::uint64_t index = control >> (8 * byte) & 0xff;
    if ((index & 0x80) != 0) continue;
    const std::uint64_t from = (index & 8) != 0 ? high : low;
    out |= (from >> (8 * (index & 7)) & 0xff) << (8 * byte);
  }
  return out;
}

bool evaluate_lane(Function function, std::span<const std::uint64_t> in, std::uint64_t& out) {
  const std::uint64_t a = in[0];
  const std::uint64_t b = in.size() > 1 ? in[1] : 0;
  switch (function) {
    case Function::kByteMask:
      out = byte_mask(in);
      return true;
    case Function::kBytesEqual:
      out = equal_fields(a, b, 8);
      return true;
    case Function::kWordsEqual:
      out = equal_fields(a, b, 16);
      return true;
    case Function::kDwordsEqual:
      out = equal_fields(a, b, 32);
      return true;
    case Function::kQwordsEqual:
      out = a == b ? ~std::uint64_t{0} : 0;
      return true;
    case Function::kBytesGreater:
      out = greater_fields(a, b, 8);
      return true;
    case Function::kWordsGreater:
      out = greater_fields(a, b, 16);
      return true;
    case Function::kDwordsGreater:
      out = greater_fields(a, b, 32);
      return true;
    case Function::kBytesMinimum:
      out = fields(a, b, 8, [](auto x, auto y) { return std::min(x, y); });
      return true;
    case Function::kBytesMaximum:
      out = fields(a, b, 8, [](auto x, auto y) { return std::max(x, y); });
      return true;
    case Function::kShuffleBytes:
      out = shuffled(a, b, in[2]);
      return true;
    case Function::kTernary:
      out = ternary(a, b, in[2], in[3]);
      return true;
    case Function::kTestFields:
      out = tested_fields(a, b, in[2]);
      return true;
    case Function::kMultiplyDwordsUnsigned:
      out = (a & 0xffffffff) * (b & 0xffffffff);
      return true;
    default:
      return false;
  }
}

/// Returns the components that XSAVE writes: of edx:eax those that XCR0 has.
std::uint64_t components(std::span<const std::uint64_t> in) {
  return (in[1] << 32 | (in[0] & low_bits(32))) & in[2];
}

bool double_shift(bool left, std::uint64_t a, std::uint64_t b, std::uint64_t count, unsigned width,
                  std::uint64_t& out) {
  count &= width == 64 ? 63 : 31;
  if (count == 0 || count >= width) return false;
  const auto n = static_cast<unsigned>(count);
  out = left ? a << n | b >> (width - n) : a >> n | b << (width - n);
  out &= low_bits(width);
  return true;
}

}  // namespace

bool evaluate(Function function, unsigned width, std::span<const std::uint64_t> in,
              std::uint64_t& out) {
  const std::uint64_t all = low_bits(width);
  const std::uint64_t a = in[0] & all;
  const std::uint64_t b = in.size() > 1 ? in[1] & all : 0;
  const auto rotate = [&](std::uint64_t left) {
    const auto n = static_cast<unsigned>(left % width);
    out = n == 0 ? a : (a << n | a >> (width - n)) & all;
    return true;
  };
  const std::uint64_t count = (in.size() > 1 ? in[1] : 0) & (width == 64 ? 63 : 31);
  switch (function) {
    case Function::kMulHigh:
      out = static_cast<std::uint64_t>(Wide{a} * b >> width) & all;
      return true;
    case Function::kMulHighSigned:
      out = static_cast<std::uint64_t>(
                SignedWide{sign_extended(a, width)} * sign_extended(b, width) >> width) &
            all;
      return true;
    case Function::kDivide:
      return divide(in[0], in[1], in[2], width, false, out);
    case Function::kRemainder:
      return divide(in[0], in[1], in[2], width, true, out);
    case Function::kDivideSigned:
      return divide_signed(in[0], in[1], in[2], width, false, out);
    case Function::kRemainderSigned:
      return divide_signed(in[0], in[1], in[2], width, true, out);
    case Function::kTrailingZeros:
      out = a == 0 ? width : static_cast<unsigned>(std::countr_zero(a));
      return true;
    case Function::kLeadingZeros:
      out = a == 0 ? width : static_cast<unsigned>(std::countl_zero(a)) - (64 - width);
      return true;
    case Function::kPopCount:
      out = static_cast<unsigned>(std::popcount(a));
      return true;
    case Function::kScanForward:
      out = static_cast<unsigned>(std::countr_zero(a));
      return a != 0;
    case Function::kScanReverse:
      out = 63 - static_cast<unsigned>(std::countl_zero(a));
      return a != 0;
    case Function::kRotateLeft:
      return rotate(count);
    case Function::kRotateRight:
      return rotate(width - count % width);
    case Function::kDoubleLeft:
      return double_shift(true, a, b, in[2], width, out);
    case Function::kDoubleRight:
      return double_shift(false, a, b, in[2], width, out);
    case Function::kXsaveBytes:
      out = xsave_bytes(components(in));
      return true;
    case Function::kCompactedXsaveBytes:
      out = compacted_xsave_bytes(components(in));
      return true;
    default:
      return evaluate_lane(function, in, out);
  }
}

}  // namespace backtrail::arch::x86::values
