// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Locates the value of a gdb register in RawRegisters.

#include <cstdint>

#include "arch/x86/raw_registers.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

/// The x87 control registers in gdb's order.
enum class X87Control : std::uint8_t {
  kFctrl,
  kFstat,
  kFtag,
  kFiseg,
  kFioff,
  kFoseg,
  kFooff,
  kFop,
};

struct RegisterSource {
  enum class Kind : std::uint8_t {
    kUser,        ///< The low bytes of `user`.
    kComponent,   ///< Bytes at `offset` of state component `component`.
    kX87Control,  ///< `control`, in gdb's form.
    kMxcsr,
  };
  Kind kind = Kind::kUser;
  UserReg user = UserReg::kRax;
  XsaveComponent component = XsaveComponent::kX87;
  X87Control control = X87Control::kFctrl;
  std::uint32_t offset = 0;
};

}  // namespace backtrail::arch::x86
