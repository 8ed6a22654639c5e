#pragma once
/// @file
/// DWARF's numbers of general registers, for unwinding.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"
#include "arch/x86/raw_registers.hpp"

namespace backtrail::arch::x86 {

/// A thread's general registers by DWARF number. The last one is the pc, which DWARF calls the
/// return address column.
/// Source: System V ABI, AMD64 supplement, "DWARF Register Number Mapping"; i386 supplement, the
/// table of the same name.
struct DwarfRegisters {
  Isa isa = Isa::kAmd64;
  std::vector<std::uint64_t> values;

  [[nodiscard]] std::uint64_t& pc() { return values.back(); }
  [[nodiscard]] std::uint64_t& sp() { return values[sp_number(isa)]; }

  [[nodiscard]] static unsigned sp_number(Isa isa);
};

[[nodiscard]] DwarfRegisters dwarf_registers(const UserRegs& user, Isa isa);

/// The registers that a signal interrupted, if `code` is glibc's, musl's or Go's way back from a
/// handler on amd64: for such code that has no unwind information.
/// @param code   The bytes from the pc on.
/// @param frame  The bytes from the stack pointer on (struct ucontext); kSignalContextBytes of them
///               are enough.
/// @return Empty values if it is none.
inline constexpr std::size_t kSignalContextBytes = 40 + 17 * 8;
[[nodiscard]] DwarfRegisters interrupted_registers(Isa isa, std::span<const std::uint8_t> code,
                                                   std::span<const std::uint8_t> frame);

}  // namespace backtrail::arch::x86
