// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/trap_action.hpp"

#include <bit>
#include <csignal>

namespace backtrail::tracee {

void TrapAction::learn(const KernelSigaction& found) {
  if (action || damaged) return;
  const auto ignore = std::bit_cast<std::uint64_t>(SIG_IGN);
  action = found;
  // The step of another thread has already reset it; that step's end will be handled later.
  damaged = ignored.value_or(false) && found.handler == 0;
  if (damaged) action->handler = ignore;
  ignored = action->handler == ignore;
}

TrapAction TrapAction::inherited() const {
  TrapAction child;
  if (!damaged) child.ignored = ignored;
  return child;
}

}  // namespace backtrail::tracee
