// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program that died, from its core file, as something to debug.

#include <memory>
#include <string>
#include <vector>

#include "arch/cpu/gdb_registers.hpp"
#include "server/target/open_core.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Memory and registers can be read but not written (EROFS). Threads move only within their past;
/// resuming at its end reports that the program is dead.
/// @param roots  Folders in which the program's files are looked for first.
std::unique_ptr<Target> make_core_target(OpenCore core, std::vector<std::string> roots);

/// Returns the registers that the core's threads have.
[[nodiscard]] arch::cpu::GdbRegisterSet core_registers(const decoder::CoreFile& core);

}  // namespace backtrail::server
