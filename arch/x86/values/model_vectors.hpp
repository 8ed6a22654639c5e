#pragma once
/// @file
/// Operands of vector instructions; only for the files of this folder.

#include "arch/x86/values/known.hpp"
#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {

/// The low 256 bits of a vector; lanes that an operand does not have are none.
using Lanes = std::array<Ref, kLanes>;

class VectorModel {
 public:
  explicit VectorModel(ModelBuilder& b);

  [[nodiscard]] ModelBuilder& builder() { return b_; }
  /// The visible operands but for the mask register of EVEX.
  [[nodiscard]] std::span<const ZydisDecodedOperand> operands() const { return operands_; }
  /// No masks, no broadcast from memory, no MMX.
  [[nodiscard]] bool usable() const;
  /// VEX or EVEX: clears what is above the result.
  [[nodiscard]] bool clears_upper() const {
    return b_.decoded().insn.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
  }
  /// One lane of a register operand; none for other operands.
  [[nodiscard]] Ref lane(const ZydisDecodedOperand& operand, unsigned lane);
  /// `bits` bits of a register or of memory; what is above 256 bits is left out.
  Lanes read(const ZydisDecodedOperand& operand, unsigned bits);
  /// Lanes beyond 256 bits that go to memory are unknown.
  void write(const ZydisDecodedOperand& operand, const Lanes& lanes, unsigned bits);

 private:
  ModelBuilder& b_;
  std::vector<ZydisDecodedOperand> operands_;
};

}  // namespace backtrail::arch::x86::values
