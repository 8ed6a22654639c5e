// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers by DWARF's numbers, and those that a signal interrupted.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/dwarf_registers.hpp"
