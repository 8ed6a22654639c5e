#pragma once
/// @file
/// What this process got from its parent, noted before main() ran: programs it starts are to find
/// the same, whatever the server has changed since.

#include <array>

#include <csignal>

namespace backtrail::tracee {

struct InheritedSignals {
  sigset_t mask{};
  std::array<bool, 65> ignored{};  ///< By signal number.
};
[[nodiscard]] const InheritedSignals& inherited_signals() noexcept;

/// Makes the calling process's signal mask and dispositions the inherited ones. Async-signal-safe.
void restore_inherited_signals() noexcept;

/// Marks every descriptor above 2 that this process opened itself close-on-exec, so that no socket
/// of ours lives on in a program we start. Inherited ones are passed on.
void keep_own_descriptors_private();

}  // namespace backtrail::tracee
