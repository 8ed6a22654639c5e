// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers and memory as a function's frame sees them, as far as they are known.

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/values.hpp"

namespace backtrail::decoder {

/// x86-64 only. Registers have DWARF's numbers (System V ABI, "DWARF Register Number Mapping").
class FrameState {
 public:
  using Known = arch::cpu::values::Known;

  static constexpr unsigned kRax = 0;
  static constexpr unsigned kRbp = 6;
  static constexpr unsigned kRsp = 7;
  static constexpr unsigned kPc = 16;       ///< The return address column.
  static constexpr unsigned kGeneral = 17;  ///< Number of general registers with the pc.
  static constexpr unsigned kFirstVector = 17;
  static constexpr unsigned kVectors = 16;

  FrameState() = default;
  FrameState(const FrameState&) = delete;
  FrameState& operator=(const FrameState&) = delete;
  virtual ~FrameState() = default;

  /// @param number  Less than kGeneral.
  [[nodiscard]] virtual Known reg(unsigned number) = 0;
  /// Returns the 64-bit lane 0 or 1 of a vector register.
  /// @param number  0 for xmm0; less than kVectors.
  [[nodiscard]] virtual Known lane(unsigned number, unsigned lane) = 0;
  /// Copies memory from an address on. Returns the number of known bytes before the first unknown
  /// one.
  [[nodiscard]] virtual std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) = 0;
  /// Returns what a register held when the frame's function was entered.
  [[nodiscard]] virtual Known at_entry(unsigned number) {
    (void)number;
    return {};
  }
};

}  // namespace backtrail::decoder
