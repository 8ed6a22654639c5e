#pragma once
/// @file
/// Where a library's function lies in a process, by the library's dynamic symbols.

#include <optional>
#include <span>
#include <string_view>

#include "arch/base/address.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

/// @param library   How its file's name begins, the folder left out.
/// @param maps      Of the process, which has it loaded.
/// Of x86-64 programs only.
[[nodiscard]] std::optional<TraceeAddr> find_library_function(
    std::span<const tracee::MapEntry> maps, std::string_view library, std::string_view function);

}  // namespace backtrail::server
