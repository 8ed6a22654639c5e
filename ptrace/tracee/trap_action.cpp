#include "ptrace/tracee/trap_action.hpp"

#include <bit>
#include <csignal>

namespace backtrail::tracee {

void TrapAction::learn(const KernelSigaction& found) {
  if (action || damaged) return;
  const auto ignore = std::bit_cast<std::uint64_t>(SIG_IGN);
  action = found;
  // Another thread's step has changed it already, and will be seen to have ended later.
  damaged = ignored.value_or(false) && found.handler == 0;
  if (damaged) action->handler = ignore;
  ignored = action->handler == ignore;
}

}  // namespace backtrail::tracee
