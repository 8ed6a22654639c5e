// SPDX-License-Identifier: Apache-2.0
#include "server/target/register_slots.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "arch/base/bytes.hpp"

namespace backtrail::server {

namespace values = arch::cpu::values;

namespace {

/// The general registers in the order of their slots.
constexpr std::array<const char*, values::kGeneralSlots> kGeneral{
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

}  // namespace

std::optional<values::Slot> general_slot(std::string_view name) {
  const auto found = std::ranges::find(kGeneral, name);
  if (found == kGeneral.end()) return std::nullopt;
  return static_cast<values::Slot>(found - kGeneral.begin());
}

std::optional<values::Slot> dwarf_slot(unsigned number) {
  constexpr std::array<values::Slot, 8> kFirst{values::kRax, values::kRdx, values::kRcx,
                                               values::kRbx, values::kRsi, values::kRdi,
                                               values::kRbp, values::kRsp};
  if (number < kFirst.size()) return kFirst.at(number);
  if (number >= values::kGeneralSlots) return std::nullopt;
  return static_cast<values::Slot>(number);
}

RegisterSlots::RegisterSlots(const arch::cpu::GdbRegisterSet& set) : set_{set} {
  for (std::size_t i = 0; i < kGeneral.size(); ++i) add(kGeneral[i], static_cast<Slot>(i), 1);
  add("fs_base", values::kFsBaseSlot, 1);
  add("gs_base", values::kGsBaseSlot, 1);
  for (unsigned i = 0; i < values::kVectorRegisters; ++i) {
    add(fmt::format("xmm{}", i).c_str(), values::vector_slot(i, 0), 2);
    // target.xml has a separate register for the upper half of each ymm register.
    add(fmt::format("ymm{}h", i).c_str(), values::vector_slot(i, 2), 2);
  }
  for (unsigned i = 0; i < values::kMaskRegisters; ++i) {
    add(fmt::format("k{}", i).c_str(), values::mask_slot(i), 1);
  }
}

void RegisterSlots::add(const char* name, Slot first, unsigned slots) {
  const auto number = set_.find(name);
  if (!number || set_.registers()[*number].bytes() != 8UL * slots) return;
  places_.push_back({*number, first, slots});
}

RegisterSlots::Known RegisterSlots::read(Slot slot, const arch::cpu::RawRegisters& raw) const {
  if (slot == values::kFlagsSlot) {
    return {raw.user[arch::cpu::UserReg::kEflags] & values::kTrackedFlags, values::kTrackedFlags};
  }
  const auto place = std::ranges::find_if(places_, [slot](const Place& candidate) {
    return slot >= candidate.first && slot < candidate.first + candidate.slots;
  });
  if (place == places_.end()) return {};
  const auto bytes = set_.read_one(place->number, raw);
  if (!bytes || bytes->size() != 8UL * place->slots) return {};
  return values::known(load_le<std::uint64_t>(*bytes, 8UL * (slot - place->first)));
}

std::vector<bool> RegisterSlots::write(const std::function<Known(Slot)>& value_of,
                                       arch::cpu::RawRegisters& raw) const {
  std::vector<bool> known(set_.registers().size());
  for (const Place& place : places_) {
    std::array<std::uint8_t, 16> bytes{};
    bool whole = true;
    for (unsigned i = 0; i < place.slots && whole; ++i) {
      const Known value = value_of(static_cast<Slot>(place.first + i));
      whole = value.all();
      store_le(bytes.data() + 8UL * i, value.value);
    }
    if (!whole) continue;
    const auto value = std::span{bytes}.first(8UL * place.slots);
    known[place.number] = set_.write_one(place.number, value, raw).has_value();
  }
  return known;
}

}  // namespace backtrail::server
