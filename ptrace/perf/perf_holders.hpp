#pragma once
/// @file
/// Who else has perf events open: the candidates when a unit is busy.

#include <string>
#include <vector>

#include <sys/types.h>

namespace backtrail::tracee {

struct PerfHolder {
  pid_t pid = 0;
  std::string name;
};

/// Processes below `proc` with a perf event open, ours left out. Others may be hidden from us.
[[nodiscard]] std::vector<PerfHolder> perf_holders(const std::string& proc = "/proc");
/// "; open perf events: perf (123), gdb (456)", or who could have them that we cannot see.
[[nodiscard]] std::string perf_holders_text();

}  // namespace backtrail::tracee
