#pragma once
/// @file
/// Where a library's function lies in a process, by the library's dynamic symbols.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "arch/base/address.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// @param library   How its file's name begins, the folder left out.
/// @param maps      Of the process `pid`, which has it loaded.
/// Of x86-64 programs only.
[[nodiscard]] std::optional<TraceeAddr> find_library_function(
    pid_t pid, std::span<const tracee::MapEntry> maps, std::string_view library,
    std::string_view function);

/// Tells of the functions of a file whose names are wanted, by its symbol table and its dynamic
/// symbols: the name as the linker has it, and where it lies in the process. Some are told of
/// twice.
/// @param file  The path to read, which may be another than `path`.
/// @param path  The file's name in `maps`.
/// Of x86-64 files only.
void visit_functions(const std::string& file, const std::string& path,
                     std::span<const tracee::MapEntry> maps,
                     const std::function<bool(std::string_view)>& wanted,
                     const std::function<void(std::string_view, TraceeAddr)>& take);

}  // namespace backtrail::server
