// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic and logic of general registers.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {
namespace {

using Operand = ZydisDecodedOperand;

bool usable(const Operand& operand) {
  return ModelBuilder::is_general(operand) ||
         (ModelBuilder::is_memory(operand) && operand.size <= 64) ||
         operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
}

bool same_register(const Operand& x, const Operand& y) {
  return x.type == ZYDIS_OPERAND_TYPE_REGISTER && y.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         x.reg.value == y.reg.value;
}

void logic_flags(ModelBuilder& b, Ref result, unsigned width) {
  const Ref flags = b.new_flags();
  b.initially(flags, 0, std::uint64_t{1} << kCf | std::uint64_t{1} << kOf);
  b.op(Op::kFlagsResult, width, {flags, result});
}

enum class Keep : std::uint8_t { kResult, kFlagsOnly };

void logic(ModelBuilder& b, Op op, const Operand& to, const Operand& from, Keep keep) {
  const unsigned width = to.size;
  const Ref x = b.read(to);
  const Ref y = same_register(to, from) ? x : b.read(from);
  const Ref result = b.result_for(to);
  if (op == Op::kXor && same_register(to, from)) {
    b.initially(result, 0, low_bits(width));
  } else {
    b.op(op, width, {result, x, y});
  }
  logic_flags(b, result, width);
  if (keep == Keep::kResult) b.write(to, result);
}

void add(ModelBuilder& b, const Operand& to, const Operand& from, bool with_carry) {
  const unsigned width = to.size;
  const Ref x = b.read(to);
  const Ref y = same_register(to, from) ? x : b.read(from);
  const Ref result = b.result_for(to);
  if (with_carry) {
    b.op(Op::kAdd, width, {result, x, y, b.slot(kFlagsSlot)}, kCf);
  } else if (same_register(to, from) && width > 1) {
    b.initially(result, 0, 1);
    b.equal(result, x, width - 1, 1, 0);
  } else {
    b.op(Op::kAdd, width, {result, x, y});
  }
  b.op(Op::kFlagsAdd, width, {b.new_flags(), x, y, result});
  b.write(to, result);
}

void subtract(ModelBuilder& b, const Operand& to, const Operand& from, bool with_borrow,
              Keep keep) {
  const unsigned width = to.size;
  const Ref x = b.read(to);
  const Ref y = same_register(to, from) ? x : b.read(from);
  const Ref result = b.result_for(to);
  const Ref old_flags = b.slot(kFlagsSlot);
  if (same_register(to, from)) {
    if (with_borrow) {
      b.op(Op::kFill, width, {result, old_flags}, 0, kCf);
    } else {
      b.initially(result, 0, low_bits(width));
    }
  } else if (with_borrow) {
    b.op(Op::kAdd, width, {x, result, y, old_flags}, kCf);
  } else {
    b.op(Op::kAdd, width, {x, result, y});
  }
  b.op(Op::kFlagsSub, width, {b.new_flags(), x, y, result});
  if (keep == Keep::kResult) b.write(to, result);
}

void step_by_one(ModelBuilder& b, const Operand& to, bool up) {
  const unsigned width = to.size;
  const Ref x = b.read(to);
  const Ref one = b.constant(1);
  const Ref result = b.result_for(to);
  const Ref flags = b.new_flags(kArithmeticFlags & ~(std::uint64_t{1} << kCf));
  if (up) {
    b.op(Op::kAdd, width, {result, x, one});
    b.op(Op::kFlagsAdd, width, {flags, x, one, result}, 1);
  } else {
    b.op(Op::kAdd, width, {x, result, one});
    b.op(Op::kFlagsSub, width, {flags, x, one, result}, 1);
  }
  b.write(to, result);
}

void negate(ModelBuilder& b, const Operand& to) {
  const Ref x = b.read(to);
  const Ref zero = b.constant(0);
  const Ref result = b.result_for(to);
  b.op(Op::kAdd, to.size, {zero, result, x});
  b.op(Op::kFlagsSub, to.size, {b.new_flags(), zero, x, result});
  b.write(to, result);
}

void invert(ModelBuilder& b, const Operand& to) {
  const Ref x = b.read(to);
  const Ref result = b.result_for(to);
  b.op(Op::kNot, to.size, {result, x});
  b.write(to, result);
}

bool exchange_add(ModelBuilder& b, const Operand& to, const Operand& from) {
  if (!b.is_memory(to) || from.size < 32) return false;
  const Ref x = b.read(to);
  const Ref y = b.read(from);
  const Ref result = b.temp();
  b.op(Op::kAdd, to.size, {result, x, y});
  b.op(Op::kFlagsAdd, to.size, {b.new_flags(), x, y, result});
  b.write(to, result);
  b.write(from, x);
  return true;
}

/// Afterwards the accumulator holds the old value of memory, whether or not the two were equal.
bool compare_exchange(ModelBuilder& b, const Operand& to, const Operand& from) {
  if (!b.is_memory(to) || to.size < 32) return false;
  const Ref x = b.read(to);
  const Ref accumulator = b.slot(kRax);
  const Ref difference = b.temp();
  const Ref flags = b.new_flags();
  b.op(Op::kAdd, to.size, {accumulator, difference, x});
  b.op(Op::kFlagsSub, to.size, {flags, accumulator, x, difference});
  const Ref equal = b.temp();
  b.equal(equal, flags, 1, 0, kZf);
  const Ref stored = b.temp();
  b.op(Op::kSelect, to.size, {stored, b.read(from), equal, x});
  b.write(to, stored);
  const Ref seen = b.temp();
  b.equal(seen, x, to.size);
  b.define(kRax, seen);
  return true;
}

/// Unlike other logic it leaves the parity flag undefined: what it is then depends on the CPU.
bool and_not(ModelBuilder& b, std::span<const Operand> operands) {
  if (operands.size() != 3 || !usable(operands[2])) return false;
  const unsigned width = operands[0].size;
  const Ref x = b.read(operands[1]);
  const Ref y = b.read(operands[2]);
  const Ref result = b.result_for(operands[0]);
  b.op(Op::kAndNot, width, {result, x, y});
  const Ref flags = b.new_flags();
  b.initially(flags, 0, std::uint64_t{1} << kCf | std::uint64_t{1} << kOf);
  const Ref zero = b.temp();
  b.op(Op::kIsZero, width, {zero, result});
  b.equal(flags, zero, 1, kZf, 0);
  b.equal(flags, result, 1, kSf, width - 1);
  b.write(operands[0], result);
  return true;
}

bool one_operand(ModelBuilder& b, const Operand& operand) {
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_INC:
      step_by_one(b, operand, true);
      return true;
    case ZYDIS_MNEMONIC_DEC:
      step_by_one(b, operand, false);
      return true;
    case ZYDIS_MNEMONIC_NEG:
      negate(b, operand);
      return true;
    case ZYDIS_MNEMONIC_NOT:
      invert(b, operand);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool model_arithmetic(ModelBuilder& b) {
  const auto operands = b.decoded().visible();
  if (operands.empty() || !usable(operands[0])) return false;
  if (b.decoded().insn.mnemonic == ZYDIS_MNEMONIC_ANDN) return and_not(b, operands);
  if (operands.size() == 1) return one_operand(b, operands[0]);
  if (operands.size() != 2 || !usable(operands[1])) return false;
  const Operand& to = operands[0];
  const Operand& from = operands[1];
  switch (b.decoded().insn.mnemonic) {
    case ZYDIS_MNEMONIC_ADD:
      add(b, to, from, false);
      return true;
    case ZYDIS_MNEMONIC_ADC:
      add(b, to, from, true);
      return true;
    case ZYDIS_MNEMONIC_SUB:
      subtract(b, to, from, false, Keep::kResult);
      return true;
    case ZYDIS_MNEMONIC_SBB:
      subtract(b, to, from, true, Keep::kResult);
      return true;
    case ZYDIS_MNEMONIC_CMP:
      subtract(b, to, from, false, Keep::kFlagsOnly);
      return true;
    case ZYDIS_MNEMONIC_AND:
      logic(b, Op::kAnd, to, from, Keep::kResult);
      return true;
    case ZYDIS_MNEMONIC_TEST:
      logic(b, Op::kAnd, to, from, Keep::kFlagsOnly);
      return true;
    case ZYDIS_MNEMONIC_OR:
      logic(b, Op::kOr, to, from, Keep::kResult);
      return true;
    case ZYDIS_MNEMONIC_XOR:
      logic(b, Op::kXor, to, from, Keep::kResult);
      return true;
    case ZYDIS_MNEMONIC_XADD:
      return exchange_add(b, to, from);
    case ZYDIS_MNEMONIC_CMPXCHG:
      return compare_exchange(b, to, from);
    default:
      return false;
  }
}

}  // namespace backtrail::arch::x86::values
