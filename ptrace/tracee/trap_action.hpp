#pragma once
/// @file
/// What a process does with SIGTRAP.

#include <cstdint>
#include <optional>

namespace backtrail::tracee {

/// struct sigaction as the kernel has it. Source: arch/x86/include/uapi/asm/signal.h.
struct KernelSigaction {
  std::uint64_t handler = 0;
  std::uint64_t flags = 0;
  std::uint64_t restorer = 0;
  std::uint64_t mask = 0;
};

/// What a process does with SIGTRAP, as far as it is known.
struct TrapAction {
  std::optional<KernelSigaction> action;
  std::optional<bool> ignored;
  bool damaged = false;  ///< The kernel's is another than `action`.

  /// The kernel said so; nothing when that was known.
  void learn(const KernelSigaction& found);
};

}  // namespace backtrail::tracee
