// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/values/relations.hpp"

#include <array>
#include <bit>

#include "arch/x86/values/evaluate.hpp"

namespace backtrail::arch::x86::values {
namespace {

constexpr std::uint64_t bit_at(unsigned bit) {
  return std::uint64_t{1} << bit;
}

/// Shares what either value knows of the field: bits from p on in d, from q on in a.
bool equal_fields(Known& d, unsigned p, Known& a, unsigned q, unsigned width) {
  const std::uint64_t field = low_bits(width);
  const Known from_a{a.value >> q & field, a.mask >> q & field};
  const Known from_d{d.value >> p & field, d.mask >> p & field};
  return d.learn(from_a.value << p, from_a.mask << p) &&
         a.learn(from_d.value << q, from_d.mask << q);
}

bool learn_bit(Known& k, unsigned bit, bool value) {
  return k.learn(value ? bit_at(bit) : 0, bit_at(bit));
}

/// Bits [p, w) of d all equal bit q of a.
bool fill(Known& d, unsigned p, unsigned w, Known& a, unsigned q) {
  if (p >= w) return true;
  const std::uint64_t field = low_bits(w) & ~low_bits(p);
  if (const std::uint64_t seen = d.mask & field; seen != 0 && !a.bit_known(q)) {
    if (!learn_bit(a, q, (d.value & seen) != 0)) return false;
  }
  if (!a.bit_known(q)) return true;
  return d.learn(a.bit(q) ? ~std::uint64_t{0} : 0, field);
}

/// One column of an addition: a + b + carry = sum + 2 * next. Each is 0, 1, or 2 for unknown.
struct Column {
  unsigned a, b, carry, sum;
};

unsigned digit(const Known& k, unsigned bit) {
  if (!k.bit_known(bit)) return 2;
  return k.bit(bit) ? 1 : 0;
}

/// Fills in what the column implies; returns its carry out, or 2.
unsigned add_column(Column& c, bool& agrees) {
  unsigned fits = 0;
  unsigned may_a = 0, may_b = 0, may_carry = 0, may_sum = 0, may_next = 0;
  for (unsigned bits = 0; bits < 8; ++bits) {
    const unsigned a = bits & 1, b = bits >> 1 & 1, carry = bits >> 2;
    const unsigned sum = a + b + carry;
    if ((c.a != 2 && c.a != a) || (c.b != 2 && c.b != b) || (c.carry != 2 && c.carry != carry) ||
        (c.sum != 2 && c.sum != (sum & 1))) {
      continue;
    }
    ++fits;
    may_a |= 1U << a;
    may_b |= 1U << b;
    may_carry |= 1U << carry;
    may_sum |= 1U << (sum & 1);
    may_next |= 1U << (sum >> 1);
  }
  if (fits == 0) {
    agrees = false;
    return 2;
  }
  const auto only = [](unsigned may) { return may == 3 ? 2U : may == 2 ? 1U : 0U; };
  c = {only(may_a), only(may_b), only(may_carry), only(may_sum)};
  return only(may_next);
}

bool learn_digit(Known& k, unsigned bit, unsigned digit) {
  return digit == 2 || learn_bit(k, bit, digit == 1);
}

bool add_slowly(Known& d, Known& a, Known& b, unsigned carry, unsigned width) {
  for (unsigned bit = 0; bit < width; ++bit) {
    Column column{digit(a, bit), digit(b, bit), carry, digit(d, bit)};
    bool agrees = true;
    carry = add_column(column, agrees);
    if (!agrees || !learn_digit(a, bit, column.a) || !learn_digit(b, bit, column.b) ||
        !learn_digit(d, bit, column.sum)) {
      return false;
    }
  }
  return true;
}

bool add(Known& d, Known& a, Known& b, Known* carry_in, unsigned carry_bit, unsigned width) {
  const std::uint64_t all = low_bits(width);
  const unsigned carry = carry_in == nullptr ? 0 : digit(*carry_in, carry_bit);
  const bool has_d = d.all(width), has_a = a.all(width), has_b = b.all(width);
  if (carry != 2) {
    if (has_a && has_b) return d.learn((a.value + b.value + carry) & all, all);
    if (has_d && has_a) return b.learn((d.value - a.value - carry) & all, all);
    if (has_d && has_b) return a.learn((d.value - b.value - carry) & all, all);
  } else if (has_d && has_a && has_b) {
    const std::uint64_t rest = (d.value - a.value - b.value) & all;
    return rest <= 1 && learn_bit(*carry_in, carry_bit, rest == 1);
  }
  return add_slowly(d, a, b, carry, width);
}

std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;
  for (unsigned round = 0; round < 6; ++round) x *= 2 - odd * x;
  return x;
}

/// d = a * b: the low bits of a product depend only on the low bits of its factors.
bool multiply(Known& d, Known& a, Known& b, unsigned width) {
  const std::uint64_t all = low_bits(width);
  const unsigned low = static_cast<unsigned>(std::countr_one(a.mask & b.mask & all));
  if (low != 0 && !d.learn(a.value * b.value & low_bits(low), low_bits(low) & all)) return false;
  for (auto [factor, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    if (!factor->all(width) || !factor->bit(0)) continue;
    const unsigned known = static_cast<unsigned>(std::countr_one(d.mask & all));
    if (known == 0) continue;
    const std::uint64_t bits = low_bits(known) & all;
    if (!other->learn(d.value * inverse(factor->value) & bits, bits)) return false;
  }
  return true;
}

/// Applies a relation of d, a and b to each of their fields of `bits` bits.
template <typename Relate>
bool in_fields(Known& d, Known& a, Known& b, unsigned bits, Relate relate) {
  constexpr unsigned kLaneBits = 64;
  const std::uint64_t field = low_bits(bits);
  for (unsigned at = 0; at < kLaneBits; at += bits) {
    std::array<Known, 3> part;
    const std::array<Known*, 3> whole{&d, &a, &b};
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i] = {whole[i]->value >> at & field, whole[i]->mask >> at & field};
    }
    if (!relate(part[0], part[1], part[2])) return false;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!whole[i]->learn(part[i].value << at, part[i].mask << at)) return false;
    }
  }
  return true;
}

bool add_fields(Known& d, Known& a, Known& b, unsigned bits) {
  return in_fields(d, a, b, bits, [bits](Known& sum, Known& one, Known& other) {
    return add(sum, one, other, nullptr, 0, bits);
  });
}

bool multiply_fields(Known& d, Known& a, Known& b, unsigned bits) {
  return in_fields(d, a, b, bits, [bits](Known& product, Known& one, Known& other) {
    return multiply(product, one, other, bits);
  });
}

bool exclusive_or(Known& d, Known& a, Known& b, std::uint64_t all) {
  const std::uint64_t ab = a.mask & b.mask & all;
  const std::uint64_t da = d.mask & a.mask & all;
  const std::uint64_t db = d.mask & b.mask & all;
  return d.learn(a.value ^ b.value, ab) && b.learn(d.value ^ a.value, da) &&
         a.learn(d.value ^ b.value, db);
}

bool both(Known& d, Known& a, Known& b, std::uint64_t all) {
  const auto zero = [](const Known& k) { return k.mask & ~k.value; };
  const std::uint64_t zeros = (zero(a) | zero(b)) & all;
  const std::uint64_t ones = a.value & b.value & all;
  if (!d.learn(0, zeros) || !d.learn(ones, ones)) return false;
  const std::uint64_t set = d.value & all;
  if (!a.learn(set, set) || !b.learn(set, set)) return false;
  const std::uint64_t clear = zero(d) & all;
  return a.learn(0, clear & b.value) && b.learn(0, clear & a.value);
}

Known inverted(const Known& k) {
  return {~k.value & k.mask, k.mask};
}

/// Runs both() on inverted copies of some operands and copies back what was learnt.
bool both_inverted(Known& d, Known& a, Known& b, std::uint64_t all, bool invert_b) {
  Known not_a = inverted(a);
  Known not_b = invert_b ? inverted(b) : b;
  Known not_d = invert_b ? inverted(d) : d;
  if (!both(not_d, not_a, not_b, all)) return false;
  a = inverted(not_a);
  b = invert_b ? inverted(not_b) : not_b;
  d = invert_b ? inverted(not_d) : not_d;
  return true;
}

bool byte_swap(Known& d, Known& a, unsigned width) {
  for (unsigned at = 0; at < width; at += 8) {
    if (!equal_fields(d, at, a, width - 8 - at, 8)) return false;
  }
  return true;
}

bool shift(Op op, Known& d, Known& a, const Known& count, unsigned width) {
  const std::uint64_t relevant = width == 64 ? 63 : 31;
  if ((count.mask & relevant) != relevant) return true;
  const auto n = static_cast<unsigned>(count.value & relevant);
  const std::uint64_t all = low_bits(width);
  if (op == Op::kShiftLeft) {
    if (n >= width) return d.learn(0, all);
    return d.learn(0, low_bits(n)) && equal_fields(d, n, a, 0, width - n);
  }
  if (op == Op::kShiftRight) {
    if (n >= width) return d.learn(0, all);
    return d.learn(0, all & ~(all >> n)) && equal_fields(d, 0, a, n, width - n);
  }
  if (n >= width) return fill(d, 0, width, a, width - 1);
  return equal_fields(d, 0, a, n, width - n) && fill(d, width - n, width, a, width - 1);
}

bool select(Known& d, Known& chosen, Known& a, Known& c, unsigned width) {
  const std::uint64_t all = low_bits(width);
  if (!chosen.bit_known(0)) {
    if (((d.value ^ a.value) & d.mask & a.mask & all) != 0) {
      if (!learn_bit(chosen, 0, false)) return false;
    } else if (((d.value ^ c.value) & d.mask & c.mask & all) != 0) {
      if (!learn_bit(chosen, 0, true)) return false;
    } else {
      const std::uint64_t same = a.mask & c.mask & ~(a.value ^ c.value) & all;
      return d.learn(a.value, same);
    }
  }
  return equal_fields(d, 0, chosen.bit(0) ? a : c, 0, width);
}

/// Makes bit p of d equal to bit q of a, or to its opposite.
bool equal_digits(Known& d, unsigned p, Known& a, unsigned q, bool negated) {
  if (a.bit_known(q) && !learn_bit(d, p, a.bit(q) != negated)) return false;
  return !d.bit_known(p) || learn_bit(a, q, d.bit(p) != negated);
}

/// c = x or y, where x and y are flags.
bool either_flag(Known& c, Known& flags, unsigned x, unsigned y, bool negated) {
  const unsigned dx = digit(flags, x), dy = digit(flags, y);
  if (dx == 1 || dy == 1) return learn_bit(c, 0, !negated);
  if (dx == 0 && dy == 0) return learn_bit(c, 0, negated);
  if (!c.bit_known(0)) return true;
  if (c.bit(0) == negated) return learn_bit(flags, x, false) && learn_bit(flags, y, false);
  if (dx == 0) return learn_bit(flags, y, true);
  return dy != 0 || learn_bit(flags, x, true);
}

/// c = SF xor OF.
bool less(Known& c, Known& flags, bool negated) {
  const unsigned s = digit(flags, kSf), o = digit(flags, kOf), l = digit(c, 0);
  if (s != 2 && o != 2) return learn_bit(c, 0, (s != o) != negated);
  if (l == 2) return true;
  const bool differ = (l == 1) != negated;
  if (s != 2) return learn_bit(flags, kOf, (s == 1) != differ);
  return o == 2 || learn_bit(flags, kSf, (o == 1) != differ);
}

/// c = ZF or (SF xor OF).
bool less_or_equal(Known& c, Known& flags, bool negated) {
  const unsigned z = digit(flags, kZf), l = digit(c, 0);
  if (z == 1) return learn_bit(c, 0, !negated);
  Known is_less;
  if (!less(is_less, flags, false)) return false;
  if (is_less.bit_known(0) && is_less.bit(0)) return learn_bit(c, 0, !negated);
  if (is_less.bit_known(0) && z == 0) return learn_bit(c, 0, negated);
  if (l == 2) return true;
  if ((l == 1) == negated) {
    Known no{0, 1};
    return learn_bit(flags, kZf, false) && less(no, flags, false);
  }
  if (z == 0) {
    Known yes{1, 1};
    return less(yes, flags, false);
  }
  return !is_less.bit_known(0) || learn_bit(flags, kZf, true);
}

bool condition(Known& c, Known& flags, unsigned code) {
  const bool negated = (code & 1) != 0;
  switch (code >> 1U) {
    case 0:
      return equal_digits(c, 0, flags, kOf, negated);
    case 1:
      return equal_digits(c, 0, flags, kCf, negated);
    case 2:
      return equal_digits(c, 0, flags, kZf, negated);
    case 3:
      return either_flag(c, flags, kCf, kZf, negated);
    case 4:
      return equal_digits(c, 0, flags, kSf, negated);
    case 5:
      return equal_digits(c, 0, flags, kPf, negated);
    case 6:
      return less(c, flags, negated);
    default:
      return less_or_equal(c, flags, negated);
  }
}

/// d[bit] = (a == 0), in both directions.
bool is_zero(Known& d, unsigned bit, Known& a, unsigned width) {
  const std::uint64_t all = low_bits(width);
  if ((a.value & all) != 0) return learn_bit(d, bit, false);
  if ((a.mask & all) == all) return learn_bit(d, bit, true);
  if (!d.bit_known(bit)) return true;
  if (d.bit(bit)) return a.learn(0, all);
  const std::uint64_t open = all & ~a.mask;
  return !std::has_single_bit(open) || a.learn(open, open);
}

bool flags_of_result(Known& f, Known& r, unsigned width) {
  if (!is_zero(f, kZf, r, width) || !equal_fields(f, kSf, r, width - 1, 1)) return false;
  if (!r.all(8)) return true;
  return learn_bit(f, kPf, std::popcount(r.value & 0xff) % 2 == 0);
}

/// CF, OF and AF of r = a + b or r = a - b.
bool carries(bool subtract, Known& f, const Known& a, const Known& b, const Known& r,
             unsigned width, bool keeps_carry) {
  if (a.bit_known(4) && b.bit_known(4) && r.bit_known(4) &&
      !learn_bit(f, kAf, ((a.value ^ b.value ^ r.value) >> 4U & 1) != 0)) {
    return false;
  }
  const unsigned top = width - 1;
  if (!a.bit_known(top) || !b.bit_known(top) || !r.bit_known(top)) return true;
  const bool x = a.bit(top), y = b.bit(top), s = r.bit(top);
  const bool carry = subtract ? (!x && y) || ((!x || y) && s) : (x && y) || ((x || y) && !s);
  const bool overflow = subtract ? x != y && x != s : x == y && x != s;
  return learn_bit(f, kOf, overflow) && (keeps_carry || learn_bit(f, kCf, carry));
}

bool evaluated(const Relation& relation, std::span<Known> v) {
  std::array<std::uint64_t, kMaxRefs> in{};
  for (std::size_t i = 1; i < v.size(); ++i) {
    if (v[i].mask != ~std::uint64_t{0} && !v[i].all(relation.q)) return true;
    in[i - 1] = v[i].value;
  }
  std::uint64_t out = 0;
  const bool defined = evaluate(static_cast<Function>(relation.p), relation.width,
                                std::span{in}.first(v.size() - 1), out);
  return !defined || v[0].learn(out, low_bits(relation.width));
}

}  // namespace

bool deduce(const Relation& relation, std::span<Known> v) {
  const std::uint64_t all = low_bits(relation.width);
  const unsigned width = relation.width;
  switch (relation.op) {
    case Op::kEqual:
      return equal_fields(v[0], relation.p, v[1], relation.q, width);
    case Op::kEqualMask:
      return v[0].learn(v[1].value, v[1].mask & v[2].value) &&
             v[1].learn(v[0].value, v[0].mask & v[2].value);
    case Op::kFill:
      return fill(v[0], relation.p, width, v[1], relation.q);
    case Op::kAdd:
      return add(v[0], v[1], v[2], v.size() > 3 ? &v[3] : nullptr, relation.p, width);
    case Op::kAddFields:
      return add_fields(v[0], v[1], v[2], relation.p);
    case Op::kMultiply:
      return multiply(v[0], v[1], v[2], width);
    case Op::kMultiplyFields:
      return multiply_fields(v[0], v[1], v[2], relation.p);
    case Op::kNot:
      return v[0].learn(~v[1].value, v[1].mask & all) && v[1].learn(~v[0].value, v[0].mask & all);
    case Op::kXor:
      return exclusive_or(v[0], v[1], v[2], all);
    case Op::kAnd:
      return both(v[0], v[1], v[2], all);
    case Op::kOr:
      return both_inverted(v[0], v[1], v[2], all, true);
    case Op::kAndNot:
      return both_inverted(v[0], v[1], v[2], all, false);
    case Op::kByteSwap:
      return byte_swap(v[0], v[1], width);
    case Op::kShiftLeft:
    case Op::kShiftRight:
    case Op::kShiftRightArithmetic:
      return shift(relation.op, v[0], v[1], v[2], width);
    case Op::kSelect:
      return select(v[0], v[2], v[1], v[3], width);
    case Op::kCondition:
      return condition(v[0], v[1], relation.p);
    case Op::kIsZero:
      return is_zero(v[0], 0, v[1], width);
    case Op::kFlagsAdd:
    case Op::kFlagsSub:
      return flags_of_result(v[0], v[3], width) &&
             carries(relation.op == Op::kFlagsSub, v[0], v[1], v[2], v[3], width, relation.p == 1);
    case Op::kFlagsResult:
      return flags_of_result(v[0], v[1], width);
    case Op::kEvaluate:
      return evaluated(relation, v);
  }
  return true;
}

}  // namespace backtrail::arch::x86::values
