// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The breakpoint instruction, the trap flag, red zone and alignment of the stack.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/program_abi.hpp"
