// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Building blocks of instruction models; used in this folder only.

#include <array>
#include <optional>
#include <span>

#include <Zydis/Zydis.h>

#include "arch/x86/values/evaluate.hpp"
#include "arch/x86/values/insn_model.hpp"
#include "arch/x86/values/known.hpp"
#include "arch/x86/values/xsave_bytes.hpp"

namespace backtrail::arch::x86::values {

/// A decoded instruction.
struct Decoded {
  TraceeAddr pc;
  ZydisDecodedInstruction insn;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  [[nodiscard]] std::span<const ZydisDecodedOperand> visible() const {
    return std::span{operands}.first(insn.operand_count_visible);
  }
  [[nodiscard]] std::span<const ZydisDecodedOperand> all() const {
    return std::span{operands}.first(insn.operand_count);
  }
  [[nodiscard]] bool has(ZydisInstructionAttributes attribute) const {
    return (insn.attributes & attribute) != 0;
  }
};

class ModelBuilder {
 public:
  ModelBuilder(const Decoded& decoded, std::uint64_t components);

  [[nodiscard]] const Decoded& decoded() const { return decoded_; }
  /// Returns the components of the CPU's XSAVE area, as bits of XCR0.
  [[nodiscard]] std::uint64_t components() const { return components_; }
  [[nodiscard]] InsnModel& model() { return model_; }
  InsnModel take() { return std::move(model_); }
  /// Drops all that was built.
  void restart();

  // Values.
  [[nodiscard]] static Ref slot(Slot slot) { return {Ref::Kind::kSlot, slot}; }
  [[nodiscard]] static Ref next_pc() { return {Ref::Kind::kNextPc, 0}; }
  Ref constant(std::uint64_t value);
  /// Returns a temporary of which no bit is known.
  Ref temp();
  /// Returns a temporary whose bits from `width` on are 0.
  Ref temp_zero_above(unsigned width);
  void initially(Ref temp, std::uint64_t value, std::uint64_t mask);

  // Relations.
  void op(Op op, unsigned width, std::initializer_list<Ref> refs, unsigned p = 0, unsigned q = 0);
  void equal(Ref d, Ref a, unsigned width, unsigned p = 0, unsigned q = 0);
  /// d = a + b, all 64 bits.
  Ref sum(Ref a, Ref b);
  Ref plus(Ref a, std::int64_t amount);
  /// Returns the value of `function` as a temporary that is 0 above `width`.
  Ref evaluated(Function function, unsigned width, unsigned input_width,
                std::initializer_list<Ref> inputs);

  // Registers.
  void define(Slot slot, Ref ref) { model_.definitions.push_back({slot, ref}); }
  void define_unknown(Slot slot) { define(slot, temp()); }
  /// Returns a new temporary for the flags after an instruction that changes arithmetic flags;
  /// flags outside of `changed` are as before.
  Ref new_flags(std::uint64_t changed = kArithmeticFlags);

  // Operands. Only the lowest `size` bits of an operand's value are valid.
  [[nodiscard]] static std::optional<Slot> general_slot(ZydisRegister reg);
  [[nodiscard]] static bool is_high_byte(ZydisRegister reg);
  /// Returns the index of an xmm, ymm or zmm register.
  [[nodiscard]] static std::optional<unsigned> vector_index(ZydisRegister reg);
  /// Returns the slot of a mask register, k0 ... k7.
  [[nodiscard]] static std::optional<Slot> mask_slot(ZydisRegister reg);
  Ref read(const ZydisDecodedOperand& operand);
  /// Returns a temporary for the operand's new value: 0 above 32 bits if the CPU clears those.
  Ref result_for(const ZydisDecodedOperand& operand);
  /// Writes the operand. `value` must come from result_for(), or be valid in all bits of the
  /// register.
  void write(const ZydisDecodedOperand& operand, Ref value);
  [[nodiscard]] static bool is_general(const ZydisDecodedOperand& operand);
  [[nodiscard]] static bool is_memory(const ZydisDecodedOperand& operand);

  // Memory.
  struct Address {
    Ref base;
    std::int64_t offset = 0;
  };
  Address address(const ZydisDecodedOperand& operand);
  void load(Address at, Ref value, unsigned bytes);
  void store(Address at, Ref value, unsigned bytes);
  /// Adds stores of unknown values.
  void store_unknown(Address at, std::uint64_t bytes);
  /// Adds a store of `bytes` unknown bytes.
  void store_range(Address at, Ref bytes);
  void store_anywhere();

  /// Makes all that the instruction writes unknown.
  void model_unknown();
  void model_opaque();

 private:
  Ref base_register(ZydisRegister reg);
  void forget_register(const ZydisDecodedOperand& operand);
  void forget_memory(const ZydisDecodedOperand& operand);

  const Decoded& decoded_;
  std::uint64_t components_;
  InsnModel model_;
};

// Each function returns false if the instruction is not of its kind or has an unknown form; what it
// has built is then dropped.
bool model_move(ModelBuilder& b);
bool model_arithmetic(ModelBuilder& b);
bool model_shift(ModelBuilder& b);
bool model_multiply(ModelBuilder& b);
bool model_control(ModelBuilder& b);
bool model_stack(ModelBuilder& b);
bool model_string(ModelBuilder& b);
/// Models a repeated one that was interrupted. Returns false for other instructions.
bool model_interrupted_string(ModelBuilder& b);
bool model_vector_move(ModelBuilder& b);
bool model_vector_arithmetic(ModelBuilder& b);
bool model_vector_permutation(ModelBuilder& b);
bool model_mask(ModelBuilder& b);
/// Instructions with effects that their operands do not show.
bool model_system(ModelBuilder& b);

}  // namespace backtrail::arch::x86::values
