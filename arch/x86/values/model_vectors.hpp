// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Operands of vector instructions; used in this folder only.

#include "arch/x86/values/known.hpp"
#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {

/// The low 256 bits of a vector. Lanes that an operand lacks are none().
using Lanes = std::array<Ref, kLanes>;

class VectorModel {
 public:
  explicit VectorModel(ModelBuilder& b);

  [[nodiscard]] ModelBuilder& builder() { return b_; }
  /// The visible operands without the mask register of EVEX.
  [[nodiscard]] std::span<const ZydisDecodedOperand> operands() const { return operands_; }
  struct Sources {
    const ZydisDecodedOperand& first;
    const ZydisDecodedOperand& second;
  };
  /// Returns the two sources of a legacy or VEX form; nullopt for other forms.
  [[nodiscard]] std::optional<Sources> sources() const;
  /// Returns true if the instruction has no mask, no broadcast from memory and no MMX operand.
  [[nodiscard]] bool usable() const;
  /// Returns true for VEX and EVEX, which clear the bits above the result.
  [[nodiscard]] bool clears_upper() const {
    return b_.decoded().insn.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  }
  /// Returns one lane of a register operand; none() for other operands.
  [[nodiscard]] Ref lane(const ZydisDecodedOperand& operand, unsigned lane);
  /// Reads `bits` bits of a register or of memory; bits above 256 are ignored.
  Lanes read(const ZydisDecodedOperand& operand, unsigned bits);
  /// Writes the operand. Stores of lanes beyond 256 bits are of unknown values.
  void write(const ZydisDecodedOperand& operand, const Lanes& lanes, unsigned bits);

 private:
  ModelBuilder& b_;
  std::vector<ZydisDecodedOperand> operands_;
};

}  // namespace backtrail::arch::x86::values
