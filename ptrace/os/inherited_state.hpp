// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State that this process inherited from its parent, saved before main() runs. Programs that the
/// server starts get this state, whatever the server has changed since.

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

/// Sets close-on-exec on every descriptor above 2 that this process opened itself, so that launched
/// programs do not inherit the server's sockets. Inherited descriptors are passed on.
void keep_own_descriptors_private();

}  // namespace backtrail::tracee
