// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The general registers of a thread, by their encoding.

#include <array>

#include "arch/x86/raw_registers.hpp"
#include "arch/x86/values/slots.hpp"

namespace backtrail::arch::x86::values {

/// The general registers in the order of their slots.
inline constexpr std::array<UserReg, kGeneralSlots> kGeneralRegisters{
    UserReg::kRax, UserReg::kRcx, UserReg::kRdx, UserReg::kRbx, UserReg::kRsp, UserReg::kRbp,
    UserReg::kRsi, UserReg::kRdi, UserReg::kR8,  UserReg::kR9,  UserReg::kR10, UserReg::kR11,
    UserReg::kR12, UserReg::kR13, UserReg::kR14, UserReg::kR15};

}  // namespace backtrail::arch::x86::values
