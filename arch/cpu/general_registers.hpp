// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The general registers of a thread (registers.hpp) in the order of their slots (values.hpp).

#include "arch/cpu/cpu.hpp"
#include "arch/x86/values/general_registers.hpp"
