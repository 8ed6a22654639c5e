// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Lists other processes with open perf events: the candidates when a unit is busy.

#include <string>
#include <vector>

#include <sys/types.h>

namespace backtrail::tracee {

struct PerfHolder {
  pid_t pid = 0;
  std::string name;
};

/// Returns the processes under `proc` that have a perf event open, except this one. Processes of
/// other users may be invisible.
[[nodiscard]] std::vector<PerfHolder> perf_holders(const std::string& proc = "/proc");
/// Returns "; open perf events: perf (123), gdb (456)", or says which invisible users there may be
/// if none is found.
[[nodiscard]] std::string perf_holders_text();

}  // namespace backtrail::tracee
