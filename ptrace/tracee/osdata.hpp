// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tables about the machine, for gdb's `info os`.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// Column names and values, in display order.
using OsDataRow = std::vector<std::pair<std::string, std::string>>;

/// Returns the rows of one table: "types" (or empty: the list of tables), "processes",
/// "procgroups", "threads", "files", "sockets", "shm", "semaphores", "msg", "modules", "cpus".
/// nullopt if there is no such table.
[[nodiscard]] std::optional<std::vector<OsDataRow>> read_osdata(std::string_view type,
                                                                const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
