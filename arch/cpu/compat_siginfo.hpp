// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// siginfo_t of 32-bit programs on a 64-bit kernel.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/siginfo32.hpp"
