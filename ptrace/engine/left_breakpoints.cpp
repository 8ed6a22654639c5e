// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/left_breakpoints.hpp"

#include <utility>

#include "arch/cpu/program_abi.hpp"

namespace backtrail::tracee {

void LeftBreakpoints::note(const BreakpointTable& table) {
  Breakpoints breakpoints;
  for (const TraceeAddr address : table.addresses()) {
    if (const auto original = table.original(address)) breakpoints.emplace_back(address, *original);
  }
  if (breakpoints.empty()) return;
  left_.push_front(std::move(breakpoints));
  if (left_.size() > kMost) left_.pop_back();
}

void LeftBreakpoints::lift_from(TraceeMemory& memory) const {
  for (const Breakpoints& breakpoints : left_) {
    for (const auto& [address, original] : breakpoints) {
      std::uint8_t now = 0;
      if (memory.read(address, {&now, 1}) != 1 || now != arch::cpu::kInt3) continue;
      (void)memory.write(address, {&original, 1});
    }
  }
}

}  // namespace backtrail::tracee
