// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gdb's registers as 64-bit slots, the unit in which past values are recovered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "arch/cpu/gdb_registers.hpp"
#include "arch/cpu/values.hpp"

namespace backtrail::server {

/// Returns the slot of a general register by its name, as "rax"; nullopt if there is none.
[[nodiscard]] std::optional<arch::cpu::values::Slot> general_slot(std::string_view name);
/// Returns the slot of a general register with DWARF's number; nullopt for other registers.
[[nodiscard]] std::optional<arch::cpu::values::Slot> dwarf_slot(unsigned number);

/// Converts between a register set and 64-bit slots. Immutable.
class RegisterSlots {
 public:
  /// Borrows `set`.
  explicit RegisterSlots(const arch::cpu::GdbRegisterSet& set);

  using Known = arch::cpu::values::Known;
  using Slot = arch::cpu::values::Slot;

  /// Returns the slot's part of a real register file; for rflags, only the tracked bits.
  [[nodiscard]] Known read(Slot slot, const arch::cpu::RawRegisters& raw) const;
  /// Writes every register whose slots are all known into `raw`. @return The written registers, by
  /// gdb's number.
  std::vector<bool> write(const std::function<Known(Slot)>& value_of,
                          arch::cpu::RawRegisters& raw) const;

 private:
  /// Register that consists of whole slots.
  struct Place {
    std::size_t number;
    Slot first;
    unsigned slots;
  };
  void add(const char* name, Slot first, unsigned slots);

  const arch::cpu::GdbRegisterSet& set_;
  std::vector<Place> places_;
};

}  // namespace backtrail::server
