// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// How a process handles SIGTRAP.

#include <cstdint>
#include <optional>

namespace backtrail::tracee {

/// struct sigaction in the kernel's layout. Source: arch/x86/include/uapi/asm/signal.h.
struct KernelSigaction {
  std::uint64_t handler = 0;
  std::uint64_t flags = 0;
  std::uint64_t restorer = 0;
  std::uint64_t mask = 0;
};

/// A process's action for SIGTRAP, as far as known.
struct TrapAction {
  std::optional<KernelSigaction> action;
  std::optional<bool> ignored;
  bool damaged = false;  ///< The kernel's action differs from `action` and must be restored.

  /// Notes the action that the kernel reported.
  void learn(const KernelSigaction& found);
  /// Returns what is known of a child's action, and of the process's own after an exec. Handlers
  /// may be reset, ignored signals stay ignored (clone(2), execve(2)).
  [[nodiscard]] TrapAction inherited() const;
};

}  // namespace backtrail::tracee
