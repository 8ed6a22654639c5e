// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// DWARF register numbers, for unwinding.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"
#include "arch/x86/raw_registers.hpp"

namespace backtrail::arch::x86 {

/// A thread's general registers, indexed by DWARF number. The last one is the pc, DWARF's return
/// address column. Source: System V ABI, AMD64 and i386 supplements, "DWARF Register Number
/// Mapping".
struct DwarfRegisters {
  Isa isa = Isa::kAmd64;
  std::vector<std::uint64_t> values;

  [[nodiscard]] std::uint64_t& pc() { return values.back(); }
  [[nodiscard]] std::uint64_t& sp() { return values[sp_number(isa)]; }

  [[nodiscard]] static unsigned sp_number(Isa isa);
};

[[nodiscard]] DwarfRegisters dwarf_registers(const UserRegs& user, Isa isa);

/// Returns the registers that a signal interrupted, if `code` is the handler return code of glibc,
/// musl or Go on amd64; otherwise empty values. Meant for such code without
/// unwind information.
/// @param code   The bytes at the pc.
/// @param frame  The bytes at the stack pointer (struct ucontext), at least kSignalContextBytes.
inline constexpr std::size_t kSignalContextBytes = 40 + 17 * 8;
[[nodiscard]] DwarfRegisters interrupted_registers(Isa isa, std::span<const std::uint8_t> code,
                                                   std::span<const std::uint8_t> frame);

}  // namespace backtrail::arch::x86
