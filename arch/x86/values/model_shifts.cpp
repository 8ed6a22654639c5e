// SPDX-License-Identifier: Apache-2.0
// Shifts, rotations, bits, multiplication and division.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

bool target(const Operand& operand) {
  return ModelBuilder::is_general(operand) ||
         (ModelBuilder::is_memory(operand) && operand.size <= 64);
}

/// Returns the count of a shift by an immediate, masked as the CPU does.
std::optional<unsigned> fixed_count(const Operand& operand, unsigned width) {
  if (operand.type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return std::nullopt;
  return static_cast<unsigned>(operand.imm.value.u & (width == 64 ? 63 : 31));
}

/// ZF, SF and PF follow from the result, CF from a bit of the operand; OF and AF stay unknown.
void shift_flags(ModelBuilder& b, Op op, Ref x, Ref result, unsigned width, unsigned count) {
  const Ref flags = b.new_flags();
  b.op(Op::kFlagsResult, width, {flags, result});
  if (count > width) return;
  b.equal(flags, x, 1, kCf, op == Op::kShiftLeft ? width - count : count - 1);
}

bool shift(ModelBuilder& b, Op op, const Operand& to, const Operand& by) {
  const unsigned width = to.size;
  const std::optional<unsigned> count = fixed_count(by, width);
  if (count == 0U) return false;
  const Ref x = b.read(to);
  const Ref n = count ? b.constant(*count) : b.read(by);
  const Ref result = b.result_for(to);
  b.op(op, width, {result, x, n});
  if (count) {
    shift_flags(b, op, x, result, width, *count);
  } else {
    b.new_flags();
  }
  b.write(to, result);
  return true;
}

bool rotate(ModelBuilder& b, bool left, const Operand& to, const Operand& by) {
  const unsigned width = to.size;
  const std::optional<unsigned> count = fixed_count(by, width);
  if (count == 0U) return false;
  const Ref x = b.read(to);
  Ref result;
  if (count) {
    result = b.result_for(to);
    const unsigned n = left ? *count % width : (width - *count % width) % width;
    b.equal(result, x, width - n, n, 0);
    if (n != 0) b.equal(result, x, n, 0, width - n);
  } else {
    if (!b.is_general(to) || width < 32) return false;
    const Ref n = b.temp_zero_above(8);
    b.equal(n, b.read(by), 8);
    result =
        b.evaluated(left ? Function::kRotateLeft : Function::kRotateRight, width, width, {x, n});
  }
  b.new_flags(std::uint64_t{1} << kCf | std::uint64_t{1} << kOf);
  b.write(to, result);
  return true;
}

bool double_shift(ModelBuilder& b, bool left, std::span<const Operand> operands) {
  if (operands.size() != 3 || operands[0].size < 32) return false;
  const unsigned width = operands[0].size;
  const std::optional<unsigned> count = fixed_count(operands[2], width);
  if (!count || *count == 0) return false;
  const Ref x = b.read(operands[0]);
  const Ref y = b.read(operands[1]);
  const Ref result = b.result_for(operands[0]);
  const unsigned n = *count;
  if (left) {
    b.equal(result, x, width - n, n, 0);
    b.equal(result, y, n, 0, width - n);
  } else {
    b.equal(result, x, width - n, 0, n);
    b.equal(result, y, n, width - n, 0);
  }
  b.op(Op::kFlagsResult, width, {b.new_flags(), result});
  b.write(operands[0], result);
  return true;
}

/// SHLX and similar instructions, which change no flags.
bool shift_without_flags(ModelBuilder& b, Op op, std::span<const Operand> operands) {
  if (operands.size() != 3) return false;
  const Ref result = b.result_for(operands[0]);
  b.op(op, operands[0].size, {result, b.read(operands[1]), b.read(operands[2])});
  b.write(operands[0], result);
  return true;
}

bool rotate_without_flags(ModelBuilder& b, std::span<const Operand> operands) {
  const unsigned width = operands[0].size;
  const auto count = static_cast<unsigned>(operands[2].imm.value.u % width);
  const Ref x = b.read(operands[1]);
  const Ref result = b.result_for(operands[0]);
  b.equal(result, x, width - count, 0, count);
  if (count != 0) b.equal(result, x, count, width - count, 0);
  b.write(operands[0], result);
  return true;
}

/// Bit instructions with a fixed position in a register or in memory.
bool one_bit(ModelBuilder& b, std::span<const Operand> operands) {
  if (operands.size() != 2 || operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
  const unsigned width = operands[0].size;
  const auto bit = static_cast<unsigned>(operands[1].imm.value.u % width);
  const Ref x = b.read(operands[0]);
  const Ref flags = b.new_flags(kArithmeticFlags & ~(std::uint64_t{1} << kZf));
  b.equal(flags, x, 1, kCf, bit);
  const std::uint64_t mask = std::uint64_t{1} << bit;
  const Ref result = b.result_for(operands[0]);
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_BT:
      return true;
    case ZYDIS_MNEMONIC_BTS:
      b.op(Op::kOr, width, {result, x, b.constant(mask)});
      break;
    case ZYDIS_MNEMONIC_BTR:
      b.op(Op::kAnd, width, {result, x, b.constant(~mask)});
      break;
    default:
      b.op(Op::kXor, width, {result, x, b.constant(mask)});
      break;
  }
  b.write(operands[0], result);
  return true;
}

/// Instructions that count bits or find one.
bool count_bits(ModelBuilder& b, Function function, bool fails_for_zero,
                std::span<const Operand> operands) {
  const unsigned width = operands[0].size;
  if (operands.size() != 2 || width < 32 || !target(operands[1])) return false;
  const Ref x = b.read(operands[1]);
  if (fails_for_zero) {
    const Ref whole = b.temp_zero_above(width);
    b.equal(whole, x, width);
    const Ref result = b.evaluated(function, 64, 64, {whole});
    const Ref flags = b.new_flags();
    const Ref zero = b.temp();
    b.op(Op::kIsZero, width, {zero, x});
    b.equal(flags, zero, 1, kZf, 0);
    b.write(operands[0], result);
    return true;
  }
  b.new_flags();
  b.write(operands[0], b.evaluated(function, width, width, {x}));
  return true;
}

/// a & (a - 1), a & -a and a ^ (a - 1).
bool lowest_bit(ModelBuilder& b, std::span<const Operand> operands) {
  const unsigned width = operands[0].size;
  const Ref x = b.read(operands[1]);
  const Ref other = b.temp();
  const Ref result = b.result_for(operands[0]);
  if (b.decoded().insn.mnemonic == ZYDIS_MNEMONIC_BLSI) {
    b.op(Op::kAdd, width, {b.constant(0), other, x});
  } else {
    b.op(Op::kAdd, width, {x, other, b.constant(1)});
  }
  const bool mask = b.decoded().insn.mnemonic == ZYDIS_MNEMONIC_BLSMSK;
  b.op(mask ? Op::kXor : Op::kAnd, width, {result, x, other});
  b.new_flags();
  b.write(operands[0], result);
  return true;
}

bool shift_or_rotate(ModelBuilder& b, std::span<const Operand> operands) {
  if (operands.size() != 2) return false;
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
      return shift(b, Op::kShiftLeft, operands[0], operands[1]);
    case ZYDIS_MNEMONIC_SHR:
      return shift(b, Op::kShiftRight, operands[0], operands[1]);
    case ZYDIS_MNEMONIC_SAR:
      return shift(b, Op::kShiftRightArithmetic, operands[0], operands[1]);
    case ZYDIS_MNEMONIC_ROL:
      return rotate(b, true, operands[0], operands[1]);
    default:
      return rotate(b, false, operands[0], operands[1]);
  }
}

}  // namespace

bool model_shift(ModelBuilder& b) {
  const auto operands = b.decoded().visible();
  if (operands.empty() || !target(operands[0])) return false;
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
      return shift_or_rotate(b, operands);
    case ZYDIS_MNEMONIC_SHLD:
      return double_shift(b, true, operands);
    case ZYDIS_MNEMONIC_SHRD:
      return double_shift(b, false, operands);
    case ZYDIS_MNEMONIC_SHLX:
      return shift_without_flags(b, Op::kShiftLeft, operands);
    case ZYDIS_MNEMONIC_SHRX:
      return shift_without_flags(b, Op::kShiftRight, operands);
    case ZYDIS_MNEMONIC_SARX:
      return shift_without_flags(b, Op::kShiftRightArithmetic, operands);
    case ZYDIS_MNEMONIC_RORX:
      return rotate_without_flags(b, operands);
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
      return one_bit(b, operands);
    case ZYDIS_MNEMONIC_TZCNT:
      return count_bits(b, Function::kTrailingZeros, false, operands);
    case ZYDIS_MNEMONIC_LZCNT:
      return count_bits(b, Function::kLeadingZeros, false, operands);
    case ZYDIS_MNEMONIC_POPCNT:
      return count_bits(b, Function::kPopCount, false, operands);
    case ZYDIS_MNEMONIC_BSF:
      return count_bits(b, Function::kScanForward, true, operands);
    case ZYDIS_MNEMONIC_BSR:
      return count_bits(b, Function::kScanReverse, true, operands);
    case ZYDIS_MNEMONIC_BLSR:
    case ZYDIS_MNEMONIC_BLSI:
    case ZYDIS_MNEMONIC_BLSMSK:
      return lowest_bit(b, operands);
    default:
      return false;
  }
}

namespace {

/// rdx:rax = rax * operand.
bool multiply_accumulator(ModelBuilder& b, const Operand& operand, bool with_sign) {
  const unsigned width = operand.size;
  if (width < 32) return false;
  const Ref x = b.slot(kRax);
  const Ref y = b.read(operand);
  const Ref low = b.temp_zero_above(width);
  b.op(Op::kMultiply, width, {low, x, y});
  const Ref high =
      b.evaluated(with_sign ? Function::kMulHighSigned : Function::kMulHigh, width, width, {x, y});
  b.new_flags();
  b.define(kRax, low);
  b.define(kRdx, high);
  return true;
}

bool multiply(ModelBuilder& b, std::span<const Operand> operands) {
  const Operand& to = operands[0];
  const Ref x = b.read(operands[operands.size() == 3 ? 1 : 0]);
  const Ref y = b.read(operands[operands.size() == 3 ? 2 : 1]);
  const Ref result = b.result_for(to);
  b.op(Op::kMultiply, to.size, {result, x, y});
  b.new_flags();
  b.write(to, result);
  return true;
}

bool multiply_without_flags(ModelBuilder& b, std::span<const Operand> operands) {
  const unsigned width = operands[0].size;
  const Ref x = b.slot(kRdx);
  const Ref y = b.read(operands[2]);
  const Ref low = b.result_for(operands[1]);
  b.op(Op::kMultiply, width, {low, x, y});
  const Ref high = b.evaluated(Function::kMulHigh, width, width, {x, y});
  // If one register is given for both halves, it gets the high half.
  b.write(operands[1], low);
  b.write(operands[0], high);
  return true;
}

bool divide(ModelBuilder& b, const Operand& operand, bool with_sign) {
  const unsigned width = operand.size;
  if (width < 32) return false;
  const Ref by = b.read(operand);
  const auto part = [&](Function function) {
    return b.evaluated(function, width, width, {b.slot(kRax), b.slot(kRdx), by});
  };
  const Ref quotient = part(with_sign ? Function::kDivideSigned : Function::kDivide);
  const Ref remainder = part(with_sign ? Function::kRemainderSigned : Function::kRemainder);
  b.new_flags();
  b.define(kRax, quotient);
  b.define(kRdx, remainder);
  return true;
}

}  // namespace

bool model_multiply(ModelBuilder& b) {
  const auto operands = b.decoded().visible();
  if (operands.empty() || !target(operands[0])) return false;
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_MUL:
      return multiply_accumulator(b, operands[0], false);
    case ZYDIS_MNEMONIC_IMUL:
      return operands.size() == 1 ? multiply_accumulator(b, operands[0], true)
                                  : multiply(b, operands);
    case ZYDIS_MNEMONIC_MULX:
      return multiply_without_flags(b, operands);
    case ZYDIS_MNEMONIC_DIV:
      return divide(b, operands[0], false);
    case ZYDIS_MNEMONIC_IDIV:
      return divide(b, operands[0], true);
    default:
      return false;
  }
}

}  // namespace backtrail::arch::x86::values
