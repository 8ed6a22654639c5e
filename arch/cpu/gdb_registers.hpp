// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gdb's view of the registers: the `g` packet and target.xml.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/gdb_registers.hpp"
