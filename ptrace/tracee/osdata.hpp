#pragma once
/// @file
/// Tables about the machine for gdb's `info os`.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// Column name and value, in display order.
using OsDataRow = std::vector<std::pair<std::string, std::string>>;

/// The rows of one table: "types" (or empty: what there is), "processes", "procgroups", "threads",
/// "files", "sockets", "shm", "semaphores", "msg", "modules", "cpus". nullopt = no such table.
[[nodiscard]] std::optional<std::vector<OsDataRow>> read_osdata(std::string_view type,
                                                                const ProcFs& proc = ProcFs{});

}  // namespace backtrail::tracee
