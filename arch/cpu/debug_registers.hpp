// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Watchpoints and breakpoints of the hardware.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/debug_registers.hpp"
