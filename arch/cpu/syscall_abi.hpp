// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls: their instruction, and the registers of number, arguments and result.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/syscall_abi.hpp"
#include "arch/x86/syscall_insn.hpp"
