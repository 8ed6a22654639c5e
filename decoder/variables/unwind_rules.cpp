// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/unwind_rules.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <dwarf.h>

#include "decoder/variables/location.hpp"

namespace backtrail::decoder {
namespace {

/// Registers that a function must give back as it found them (System V ABI): rbx, rbp, r12 to r15.
constexpr std::array<unsigned, 6> kPreserved{3, 6, 12, 13, 14, 15};

class CallerState final : public FrameState {
 public:
  CallerState(FrameState& callee, const std::array<Known, kGeneral>& registers)
      : callee_{callee}, registers_{registers} {}
  Known reg(unsigned number) override {
    return number < registers_.size() ? registers_[number] : Known{};
  }
  /// No vector register survives a call.
  Known lane(unsigned number, unsigned lane) override {
    (void)number, (void)lane;
    return {};
  }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    return callee_.memory(address, out);
  }

 private:
  FrameState& callee_;
  std::array<Known, kGeneral> registers_;
};

}  // namespace

UnwindRules::UnwindRules(Dwarf_CFI* table, std::uint64_t address) {
  Dwarf_Frame* frame = nullptr;
  if (table == nullptr || dwarf_cfi_addrframe(table, address, &frame) != 0) return;
  frame_ = std::shared_ptr<Dwarf_Frame>{frame, [](Dwarf_Frame* one) { std::free(one); }};
}

std::optional<std::uint64_t> UnwindRules::cfa(FrameState& state, WorkLimit& work) const {
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (!frame_ || dwarf_frame_cfa(frame_.get(), &ops, &count) != 0 || count == 0) {
    return std::nullopt;
  }
  return evaluate_number({ops, count}, std::nullopt,
                         {.state = state, .cfa = {}, .frame_base = {}, .work = work});
}

std::optional<std::uint64_t> UnwindRules::distance_from_sp() const {
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (!frame_ || dwarf_frame_cfa(frame_.get(), &ops, &count) != 0 || count != 1) {
    return std::nullopt;
  }
  if (ops[0].atom == DW_OP_breg7) return ops[0].number;
  const bool is_sp = ops[0].atom == DW_OP_bregx && ops[0].number == FrameState::kRsp;
  return is_sp ? std::optional<std::uint64_t>{ops[0].number2} : std::nullopt;
}

FrameState::Known UnwindRules::caller_register(unsigned number, std::uint64_t cfa,
                                               FrameState& state, WorkLimit& work) const {
  std::array<Dwarf_Op, 3> room{};
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame_.get(), static_cast<int>(number), room.data(), &ops, &count) !=
      0) {
    return {};
  }
  if (count == 0) {
    const bool is_same = ops == nullptr;
    return is_same && std::ranges::find(kPreserved, number) != kPreserved.end()
               ? state.reg(number)
               : FrameState::Known{};
  }
  const ExpressionContext context{
      .state = state, .cfa = [cfa] { return std::optional{cfa}; }, .frame_base = {}, .work = work};
  const Location location = evaluate_location({ops, count}, nullptr, context);
  if (location.size() != 1) return {};
  const ObjectBytes object = read_object(location, sizeof(std::uint64_t), state);
  FrameState::Known out;
  for (std::size_t i = 0; i < object.bytes.size(); ++i) {
    if (!object.known[i]) continue;
    out.value |= std::uint64_t{object.bytes[i]} << 8 * i;
    out.mask |= std::uint64_t{0xff} << 8 * i;
  }
  return out;
}

std::unique_ptr<FrameState> UnwindRules::caller(FrameState& state, WorkLimit& work) const {
  const auto cfa_now = cfa(state, work);
  if (!cfa_now) return nullptr;
  std::array<FrameState::Known, FrameState::kGeneral> registers;
  for (unsigned i = 0; i < registers.size(); ++i) {
    registers[i] = caller_register(i, *cfa_now, state, work);
  }
  // Without a rule of its own the stack pointer is the CFA.
  if (!registers[FrameState::kRsp].all()) {
    registers[FrameState::kRsp] = arch::cpu::values::known(*cfa_now);
  }
  if (!registers[FrameState::kPc].all()) return nullptr;
  return std::make_unique<CallerState>(state, registers);
}

}  // namespace backtrail::decoder
