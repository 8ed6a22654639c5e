// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds functions of a library in a process by its symbols.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "arch/base/address.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// Returns a function's address by the library's dynamic symbols; nullopt if not found. x86-64
/// only.
/// @param library Beginning of its file's name, without the folder.
/// @param maps Mappings of process `pid`, which has loaded it.
[[nodiscard]] std::optional<TraceeAddr> find_library_function(
    pid_t pid, std::span<const tracee::MapEntry> maps, std::string_view library,
    std::string_view function);

/// Calls `take` for the functions of a file whose names are wanted, with the name in the linker's
/// form and the address in the process. Searches the symbol table and the dynamic symbols, so some
/// functions come twice. x86-64 only.
/// @param file Path to read, which may differ from `path`.
/// @param path The file's name in `maps`.
void visit_functions(const std::string& file, const std::string& path,
                     std::span<const tracee::MapEntry> maps,
                     const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(std::string_view, TraceeAddr)>& take);

}  // namespace backtrail::server
