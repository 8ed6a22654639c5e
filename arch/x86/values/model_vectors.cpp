// SPDX-License-Identifier: Apache-2.0
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_vectors.hpp"

namespace backtrail::arch::x86::values {

VectorModel::VectorModel(ModelBuilder& b) : b_{b} {
  for (const ZydisDecodedOperand& operand : b.decoded().visible()) {
    const bool mask = operand.encoding == ZYDIS_OPERAND_ENCODING_MASK;
    if (!mask) operands_.push_back(operand);
  }
}

std::optional<VectorModel::Sources> VectorModel::sources() const {
  if (operands_.size() == 2) return Sources{operands_[0], operands_[1]};
  if (operands_.size() == 3) return Sources{operands_[1], operands_[2]};
  return std::nullopt;
}

bool VectorModel::usable() const {
  const ZydisDecodedInstruction& insn = b_.decoded().insn;
  const bool masked =
      insn.avx.mask.reg != ZYDIS_REGISTER_NONE && insn.avx.mask.reg != ZYDIS_REGISTER_K0;
  if (masked || insn.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID) {
    // VBROADCAST and VPBROADCAST always have a broadcast mode.
    if (masked || !insn.avx.broadcast.is_static) return false;
  }
  for (const ZydisDecodedOperand& operand : operands_) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
        !ModelBuilder::vector_index(operand.reg.value) &&
        !ModelBuilder::general_slot(operand.reg.value)) {
      return false;
    }
  }
  return true;
}

Ref VectorModel::lane(const ZydisDecodedOperand& operand, unsigned lane) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return {};
  const auto index = ModelBuilder::vector_index(operand.reg.value);
  return index ? ModelBuilder::slot(vector_slot(*index, lane)) : Ref{};
}

Lanes VectorModel::read(const ZydisDecodedOperand& operand, unsigned bits) {
  Lanes lanes;
  const unsigned count = std::min(bits / 64, kLanes);
  if (!ModelBuilder::is_memory(operand)) {
    for (unsigned i = 0; i < count; ++i) lanes[i] = lane(operand, i);
    return lanes;
  }
  const ModelBuilder::Address at = b_.address(operand);
  for (unsigned i = 0; i < count; ++i) {
    lanes[i] = b_.temp();
    b_.load({at.base, at.offset + 8 * static_cast<std::int64_t>(i)}, lanes[i], 8);
  }
  return lanes;
}

void VectorModel::write(const ZydisDecodedOperand& operand, const Lanes& lanes, unsigned bits) {
  if (ModelBuilder::is_memory(operand)) {
    const ModelBuilder::Address at = b_.address(operand);
    for (unsigned i = 0; i < bits / 64; ++i) {
      const Ref value = i < kLanes && !lanes[i].none() ? lanes[i] : b_.temp();
      b_.store({at.base, at.offset + 8 * static_cast<std::int64_t>(i)}, value, 8);
    }
    return;
  }
  const auto index = ModelBuilder::vector_index(operand.reg.value);
  if (!index) return;
  const unsigned count = std::min(bits / 64, kLanes);
  for (unsigned i = 0; i < count; ++i) {
    b_.define(vector_slot(*index, i), lanes[i].none() ? b_.temp() : lanes[i]);
  }
  if (!clears_upper()) return;
  for (unsigned i = count; i < kLanes; ++i) b_.define(vector_slot(*index, i), b_.constant(0));
}

}  // namespace backtrail::arch::x86::values
