// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The registers of a thread as the kernel hands them out. UserRegs: pc(), sp(), set_pc().
/// RawRegisters: all of them.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/raw_registers.hpp"
