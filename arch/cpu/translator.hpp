// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translates code: superblocks, the thread page, and the program's state inside of them.

#include "arch/cpu/cpu.hpp"
#include "arch/x86/translate/decoded_insns.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/program_state.hpp"
#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "arch/x86/translate/translator.hpp"
