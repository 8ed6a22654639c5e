// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/expression_stack.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <dwarf.h>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kMostValues = 1024;
constexpr unsigned kBits = 64;

std::int64_t as_signed(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

std::optional<std::uint64_t> quotient(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return std::nullopt;
  if (as_signed(a) == std::numeric_limits<std::int64_t>::min() && as_signed(b) == -1) return a;
  return static_cast<std::uint64_t>(as_signed(a) / as_signed(b));
}

std::uint64_t shifted_arithmetically(std::uint64_t a, std::uint64_t by) {
  return static_cast<std::uint64_t>(as_signed(a) >> std::min<std::uint64_t>(by, kBits - 1));
}

std::optional<std::uint64_t> comparison(unsigned atom, std::uint64_t a, std::uint64_t b) {
  switch (atom) {
    case DW_OP_eq:
      return a == b;
    case DW_OP_ne:
      return a != b;
    case DW_OP_lt:
      return as_signed(a) < as_signed(b);
    case DW_OP_le:
      return as_signed(a) <= as_signed(b);
    case DW_OP_gt:
      return as_signed(a) > as_signed(b);
    case DW_OP_ge:
      return as_signed(a) >= as_signed(b);
    default:
      return std::nullopt;
  }
}

/// Returns the result of an operation on two values; nullopt if it is none, or undefined.
std::optional<std::uint64_t> result(unsigned atom, std::uint64_t a, std::uint64_t b) {
  switch (atom) {
    case DW_OP_and:
      return a & b;
    case DW_OP_or:
      return a | b;
    case DW_OP_xor:
      return a ^ b;
    case DW_OP_plus:
      return a + b;
    case DW_OP_minus:
      return a - b;
    case DW_OP_mul:
      return a * b;
    case DW_OP_div:
      return quotient(a, b);
    case DW_OP_mod:
      return b == 0 ? std::nullopt : std::optional{a % b};
    case DW_OP_shl:
      return b < kBits ? a << b : 0;
    case DW_OP_shr:
      return b < kBits ? a >> b : 0;
    case DW_OP_shra:
      return shifted_arithmetically(a, b);
    default:
      return comparison(atom, a, b);
  }
}

}  // namespace

std::optional<std::uint64_t> ExpressionStack::pop() {
  if (values_.empty()) return std::nullopt;
  const std::uint64_t top = values_.back();
  values_.pop_back();
  return top;
}

bool ExpressionStack::apply(const Dwarf_Op& op) {
  if (values_.size() > kMostValues) return false;
  return constant(op) || shuffle(op) || unary(op) || binary(op);
}

bool ExpressionStack::constant(const Dwarf_Op& op) {
  if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
    push(op.atom - DW_OP_lit0);
    return true;
  }
  switch (op.atom) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
      push(op.number);
      return true;
    default:
      return false;
  }
}

/// Pushes a copy of the value that `depth` others lie on.
bool ExpressionStack::copy(std::uint64_t depth) {
  if (depth >= values_.size()) return false;
  push(values_[values_.size() - 1 - depth]);
  return true;
}

bool ExpressionStack::shuffle(const Dwarf_Op& op) {
  const std::size_t count = values_.size();
  switch (op.atom) {
    case DW_OP_nop:
      return true;
    case DW_OP_dup:
      return copy(0);
    case DW_OP_over:
      return copy(1);
    case DW_OP_pick:
      return copy(op.number);
    case DW_OP_drop:
      return pop().has_value();
    case DW_OP_swap:
      if (count < 2) return false;
      std::swap(values_[count - 1], values_[count - 2]);
      return true;
    case DW_OP_rot:
      if (count < 3) return false;
      std::rotate(values_.end() - 3, values_.end() - 1, values_.end());
      return true;
    default:
      return false;
  }
}

bool ExpressionStack::unary(const Dwarf_Op& op) {
  if (values_.empty()) return false;
  std::uint64_t& top = values_.back();
  switch (op.atom) {
    case DW_OP_abs:
      if (as_signed(top) < 0) top = 0 - top;
      return true;
    case DW_OP_neg:
      top = 0 - top;
      return true;
    case DW_OP_not:
      top = ~top;
      return true;
    case DW_OP_plus_uconst:
      top += op.number;
      return true;
    default:
      return false;
  }
}

bool ExpressionStack::binary(const Dwarf_Op& op) {
  if (values_.size() < 2) return false;
  const std::uint64_t b = values_[values_.size() - 1];
  const std::uint64_t a = values_[values_.size() - 2];
  const auto value = result(op.atom, a, b);
  if (!value) return false;
  values_.pop_back();
  values_.back() = *value;
  return true;
}

}  // namespace backtrail::decoder
