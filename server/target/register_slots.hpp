#pragma once
/// @file
/// gdb's registers as the pieces whose past values are recovered.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "arch/x86/gdb_registers.hpp"
#include "arch/x86/values/known.hpp"
#include "arch/x86/values/slots.hpp"

namespace backtrail::server {

/// Translates between a register set and slots of 64 bits. Immutable.
class RegisterSlots {
 public:
  /// `set` is borrowed.
  explicit RegisterSlots(const arch::x86::GdbRegisterSet& set);

  using Known = arch::x86::values::Known;
  using Slot = arch::x86::values::Slot;

  /// The piece of a real register file that a slot stands for; of rflags the tracked bits alone.
  [[nodiscard]] Known read(Slot slot, const arch::x86::RawRegisters& raw) const;
  /// Puts every register into `raw` whose slots are all known. @return Which ones, by gdb's number.
  std::vector<bool> write(const std::function<Known(Slot)>& value_of,
                          arch::x86::RawRegisters& raw) const;

 private:
  /// A register that is made of whole slots.
  struct Place {
    std::size_t number;
    Slot first;
    unsigned slots;
  };
  void add(const char* name, Slot first, unsigned slots);

  const arch::x86::GdbRegisterSet& set_;
  std::vector<Place> places_;
};

}  // namespace backtrail::server
