// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/left_breakpoints.hpp"

#include <ranges>

#include "arch/cpu/program_abi.hpp"

namespace backtrail::tracee {

void LeftBreakpoints::note(const BreakpointTable& table) {
  Breakpoints breakpoints;
  for (const TraceeAddr address : table.addresses()) {
    if (const auto original = table.original(address)) breakpoints.emplace_back(address, *original);
  }
  if (breakpoints.empty()) return;
  left_.push_back(std::move(breakpoints));
  if (left_.size() > kMost) left_.pop_front();
}

void LeftBreakpoints::lift_from(TraceeMemory& memory) const {
  // The youngest first: of two with one address it is the likelier.
  for (const Breakpoints& breakpoints : left_ | std::views::reverse) {
    for (const auto& [address, original] : breakpoints) {
      std::uint8_t now = 0;
      if (memory.read(address, {&now, 1}) != 1 || now != arch::cpu::kInt3) continue;
      (void)memory.write(address, {&original, 1});
    }
  }
}

}  // namespace backtrail::tracee
