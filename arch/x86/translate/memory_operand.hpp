// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory operands of the code that the translator adds.

#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "arch/x86/translate/layout.hpp"

namespace backtrail::arch::x86::translate {

/// General registers, by their encoding.
enum class Gpr : std::uint8_t {
  kRax,
  kRcx,
  kRdx,
  kRbx,
  kRsp,
  kRbp,
  kRsi,
  kRdi,
  kR8,
  kR9,
  kR10,
  kR11,
  kR12,
  kR13,
  kR14,
  kR15,
};

/// A memory operand. The size of the displacement is chosen by the caller, so that the length of an
/// instruction depends on nothing else.
struct Memory {
  std::optional<Gpr> base = {};
  std::optional<Gpr> index = {};  ///< Any register but rsp.
  std::uint8_t scale_bits = 0;    ///< The index counts 1 << scale_bits bytes.
  std::int32_t displacement = 0;
  std::uint8_t displacement_bytes = 0;  ///< 0 (not for rbp and r13), 1 or 4; 4 without a base.
  bool is_gs = false;                   ///< Relative to the gs base.

  /// gs:[slot+skip]
  static constexpr Memory of(Slot slot, std::uint8_t skip = 0) {
    return {.displacement = static_cast<std::int32_t>(slot) + skip,
            .displacement_bytes = 4,
            .is_gs = true};
  }
  /// gs:[base+slot]
  static constexpr Memory of(Slot slot, Gpr base) {
    return {.base = base,
            .displacement = static_cast<std::int32_t>(slot),
            .displacement_bytes = 4,
            .is_gs = true};
  }
  /// [base]
  static constexpr Memory at(Gpr base) { return {.base = base}; }
  /// [base+distance]
  static constexpr Memory at(Gpr base, std::int8_t distance) {
    return {.base = base, .displacement = distance, .displacement_bytes = 1};
  }
  /// [base+distance], with four bytes for the distance.
  static constexpr Memory far(Gpr base, std::int32_t distance) {
    return {.base = base, .displacement = distance, .displacement_bytes = 4};
  }
  /// [base+index]
  static constexpr Memory sum(Gpr base, Gpr index) { return {.base = base, .index = index}; }
  /// [base+index+distance]
  static constexpr Memory sum(Gpr base, Gpr index, std::int8_t distance) {
    return {.base = base, .index = index, .displacement = distance, .displacement_bytes = 1};
  }
  /// gs:[index*8+kValuesOffset+more*8]: a value of the ring.
  static constexpr Memory value(Gpr index, std::size_t more) {
    return {.index = index,
            .scale_bits = 3,
            .displacement = static_cast<std::int32_t>(kValuesOffset + more * kValueBytes),
            .displacement_bytes = 4,
            .is_gs = true};
  }
  /// [table+index*8], for a table below kTableLimit.
  static constexpr Memory entry(TraceeAddr table, Gpr index) {
    return {.index = index,
            .scale_bits = 3,
            .displacement = static_cast<std::int32_t>(table.value()),
            .displacement_bytes = 4};
  }
};

}  // namespace backtrail::arch::x86::translate
