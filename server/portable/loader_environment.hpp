// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The portable folder has its own dynamic linker. The user's linker settings (ld.so(8)) are meant
/// for the programs that backtrail runs and could keep backtrail from starting: an LD_PRELOAD
/// library may need a newer C library. So the launcher renames those variables, and backtrail
/// restores them.

namespace backtrail::server {

/// Prefix of the renamed variables.
inline constexpr const char* kWaitingPrefix = "BACKTRAIL_WAITING_";

/// Restores the names of the variables that the launcher renamed, in the same order. Changes no
/// other variable.
/// @param environment  environ(7), ends with a null pointer; pointers in it are changed.
void restore_loader_environment(char** environment);

/// Names this process after its command; ps(1) would show the dynamic linker's name.
void restore_process_name(const char* command);

}  // namespace backtrail::server
