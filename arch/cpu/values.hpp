// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What an instruction does to registers and memory, as relations between values.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/values/insn_model.hpp"
#include "arch/x86/values/known.hpp"
#include "arch/x86/values/relations.hpp"
#include "arch/x86/values/signal_frame.hpp"
#include "arch/x86/values/slots.hpp"
#include "arch/x86/values/xsave_bytes.hpp"
