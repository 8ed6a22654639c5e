// SPDX-License-Identifier: Apache-2.0
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {

ModelBuilder::ModelBuilder(const Decoded& decoded, std::uint64_t components)
    : decoded_{decoded}, components_{components} {
  restart();
}

void ModelBuilder::restart() {
  model_ = {};
  model_.length = decoded_.insn.length;
}

Ref ModelBuilder::constant(std::uint64_t value) {
  for (std::size_t i = 0; i < model_.constants.size(); ++i) {
    if (model_.constants[i] == value) return {Ref::Kind::kConstant, static_cast<std::uint16_t>(i)};
  }
  model_.constants.push_back(value);
  return {Ref::Kind::kConstant, static_cast<std::uint16_t>(model_.constants.size() - 1)};
}

Ref ModelBuilder::temp() {
  return {Ref::Kind::kTemp, model_.temps++};
}

Ref ModelBuilder::temp_zero_above(unsigned width) {
  const Ref ref = temp();
  if (width < 64) initially(ref, 0, ~((std::uint64_t{1} << width) - 1));
  return ref;
}

void ModelBuilder::initially(Ref temp, std::uint64_t value, std::uint64_t mask) {
  model_.initials.push_back({temp, value & mask, mask});
}

void ModelBuilder::op(Op op, unsigned width, std::initializer_list<Ref> refs, unsigned p,
                      unsigned q) {
  MicroOp made{op, static_cast<std::uint8_t>(width), static_cast<std::uint8_t>(p),
               static_cast<std::uint8_t>(q)};
  std::copy(refs.begin(), refs.end(), made.refs.begin());
  model_.ops.push_back(made);
}

void ModelBuilder::equal(Ref d, Ref a, unsigned width, unsigned p, unsigned q) {
  op(Op::kEqual, width, {d, a}, p, q);
}

Ref ModelBuilder::sum(Ref a, Ref b) {
  const Ref d = temp();
  op(Op::kAdd, 64, {d, a, b});
  return d;
}

Ref ModelBuilder::plus(Ref a, std::int64_t amount) {
  return amount == 0 ? a : sum(a, constant(static_cast<std::uint64_t>(amount)));
}

Ref ModelBuilder::evaluated(Function function, unsigned width, unsigned input_width,
                            std::initializer_list<Ref> inputs) {
  const Ref d = temp_zero_above(width);
  MicroOp made{Op::kEvaluate, static_cast<std::uint8_t>(width), static_cast<std::uint8_t>(function),
               static_cast<std::uint8_t>(input_width)};
  made.refs[0] = d;
  std::copy(inputs.begin(), inputs.end(), made.refs.begin() + 1);
  model_.ops.push_back(made);
  return d;
}

Ref ModelBuilder::new_flags(std::uint64_t changed) {
  const Ref flags = temp();
  op(Op::kEqualMask, 64, {flags, slot(kFlagsSlot), constant(kTrackedFlags & ~changed)});
  define(kFlagsSlot, flags);
  return flags;
}

std::optional<Slot> ModelBuilder::general_slot(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return std::nullopt;
  return static_cast<Slot>(ZydisRegisterGetId(whole));
}

bool ModelBuilder::is_high_byte(ZydisRegister reg) {
  return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

std::optional<unsigned> ModelBuilder::vector_index(ZydisRegister reg) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
      return static_cast<unsigned>(ZydisRegisterGetId(reg));
    default:
      return std::nullopt;
  }
}

std::optional<Slot> ModelBuilder::mask_slot(ZydisRegister reg) {
  if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_MASK) return std::nullopt;
  return values::mask_slot(static_cast<unsigned>(ZydisRegisterGetId(reg)));
}

bool ModelBuilder::is_general(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && general_slot(operand.reg.value);
}

bool ModelBuilder::is_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM;
}

Ref ModelBuilder::read(const ZydisDecodedOperand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) return constant(operand.imm.value.u);
  if (is_memory(operand) && operand.size <= 64) {
    const Ref value = temp_zero_above(operand.size);
    load(address(operand), value, operand.size / 8);
    return value;
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return temp();
  const std::optional<Slot> whole = general_slot(operand.reg.value);
  if (!whole) return temp();
  if (!is_high_byte(operand.reg.value)) return slot(*whole);
  const Ref value = temp_zero_above(8);
  equal(value, slot(*whole), 8, 0, 8);
  return value;
}

Ref ModelBuilder::result_for(const ZydisDecodedOperand& operand) {
  return is_general(operand) && operand.size != 32 ? temp() : temp_zero_above(operand.size);
}

void ModelBuilder::write(const ZydisDecodedOperand& operand, Ref value) {
  if (is_memory(operand)) {
    store(address(operand), value, operand.size / 8);
    return;
  }
  const std::optional<Slot> whole = general_slot(operand.reg.value);
  if (!whole) return;
  if (operand.size >= 32) {
    define(*whole, value);
    return;
  }
  const unsigned from = is_high_byte(operand.reg.value) ? 8 : 0;
  const Ref merged = temp();
  equal(merged, value, operand.size, from, 0);
  const unsigned above = from + operand.size;
  equal(merged, slot(*whole), 64 - above, above, above);
  if (from != 0) equal(merged, slot(*whole), from);
  define(*whole, merged);
}

Ref ModelBuilder::base_register(ZydisRegister reg) {
  const std::optional<Slot> whole = general_slot(reg);
  return whole ? slot(*whole) : temp();
}

ModelBuilder::Address ModelBuilder::address(const ZydisDecodedOperand& operand) {
  const auto& mem = operand.mem;
  const std::int64_t offset = mem.disp.has_displacement ? mem.disp.value : 0;
  if (mem.base == ZYDIS_REGISTER_RIP) {
    Address at{
        constant(decoded_.pc.value() + decoded_.insn.length + static_cast<std::uint64_t>(offset)),
        0};
    if (mem.segment == ZYDIS_REGISTER_FS) at.base = sum(at.base, slot(kFsBaseSlot));
    if (mem.segment == ZYDIS_REGISTER_GS) at.base = sum(at.base, slot(kGsBaseSlot));
    return at;
  }
  if (mem.base == ZYDIS_REGISTER_EIP) return {temp(), 0};
  Ref total;
  if (mem.base != ZYDIS_REGISTER_NONE) total = base_register(mem.base);
  if (mem.index != ZYDIS_REGISTER_NONE) {
    Ref index = base_register(mem.index);
    if (mem.scale > 1) {
      const unsigned by = mem.scale == 2 ? 1 : mem.scale == 4 ? 2 : 3;
      const Ref scaled = temp();
      initially(scaled, 0, low_bits(by));
      equal(scaled, index, 64 - by, by, 0);
      index = scaled;
    }
    total = total.none() ? index : sum(total, index);
  }
  Address at{total.none() ? constant(0) : total, offset};
  if (decoded_.insn.address_width == 32) {
    const Ref low = temp_zero_above(32);
    equal(low, plus(at.base, at.offset), 32);
    at = {low, 0};
  }
  if (mem.segment == ZYDIS_REGISTER_FS) at.base = sum(at.base, slot(kFsBaseSlot));
  if (mem.segment == ZYDIS_REGISTER_GS) at.base = sum(at.base, slot(kGsBaseSlot));
  return at;
}

void ModelBuilder::load(Address at, Ref value, unsigned bytes) {
  model_.accesses.push_back(
      {AccessKind::kLoad, static_cast<std::uint8_t>(bytes), at.base, value, at.offset});
}

void ModelBuilder::store(Address at, Ref value, unsigned bytes) {
  model_.accesses.push_back(
      {AccessKind::kStore, static_cast<std::uint8_t>(bytes), at.base, value, at.offset});
}

void ModelBuilder::store_unknown(Address at, std::uint64_t bytes) {
  if (bytes > 64) {
    store_range(at, constant(bytes));
    return;
  }
  for (std::uint64_t done = 0; done < bytes; done += 8) {
    store({at.base, at.offset + static_cast<std::int64_t>(done)}, temp(),
          static_cast<unsigned>(std::min<std::uint64_t>(8, bytes - done)));
  }
}

void ModelBuilder::store_range(Address at, Ref bytes) {
  model_.accesses.push_back({AccessKind::kRangeStore, 0, at.base, bytes, at.offset});
}

void ModelBuilder::store_anywhere() {
  model_.accesses.push_back({AccessKind::kUnknownStore, 0, constant(0), constant(0), 0});
}

void ModelBuilder::forget_register(const ZydisDecodedOperand& operand) {
  const ZydisRegister reg = operand.reg.value;
  if (const auto whole = general_slot(reg)) {
    define_unknown(*whole);
  } else if (const auto mask = mask_slot(reg)) {
    define_unknown(*mask);
  } else if (const auto index = vector_index(reg)) {
    for (unsigned lane = 0; lane < kLanes; ++lane) define_unknown(vector_slot(*index, lane));
  }
}

void ModelBuilder::forget_memory(const ZydisDecodedOperand& operand) {
  if (operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) return;
  const bool repeated =
      decoded_.has(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
  if (!is_memory(operand) || operand.visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT ||
      vector_index(operand.mem.index) || repeated) {
    store_anywhere();
    return;
  }
  store_unknown(address(operand),
                operand.size == 0 ? xsave_bytes(kAnyComponents) : operand.size / 8);
}

void ModelBuilder::model_unknown() {
  restart();
  const ZydisAccessedFlags* flags = decoded_.insn.cpu_flags;
  const std::uint64_t changed =
      flags == nullptr ? 0 : flags->modified | flags->set_0 | flags->set_1 | flags->undefined;
  if ((changed & kTrackedFlags) != 0) new_flags(changed);
  bool flags_written = (changed & kTrackedFlags) != 0;
  for (const ZydisDecodedOperand& operand : decoded_.all()) {
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) forget_memory(operand);
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    if (ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_FLAGS) {
      if (!flags_written) define_unknown(kFlagsSlot);
      flags_written = true;
    }
    forget_register(operand);
  }
}

void ModelBuilder::model_opaque() {
  restart();
  model_.special = Special::kOpaque;
  for (Slot slot = 0; slot < kSlotCount; ++slot) define_unknown(slot);
}

}  // namespace backtrail::arch::x86::values
