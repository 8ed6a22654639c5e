// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The SYSCALL instruction, and orig_rax outside of system calls.

#include <array>
#include <cstdint>
#include <span>

namespace backtrail::arch::x86 {

/// Source: SDM vol. 2B, SYSCALL.
inline constexpr std::array<std::uint8_t, 2> kSyscallInsn{0x0f, 0x05};
inline constexpr std::uint64_t kSyscallInsnBytes = kSyscallInsn.size();
/// True for code that begins with it.
[[nodiscard]] constexpr bool is_syscall(std::span<const std::uint8_t> code) {
  return code.size() >= kSyscallInsnBytes && code[0] == kSyscallInsn[0] &&
         code[1] == kSyscallInsn[1];
}
/// Value of orig_rax in a thread outside of system calls (arch/x86/kernel/ptrace.c).
inline constexpr std::uint64_t kNoSystemCall = ~std::uint64_t{0};

}  // namespace backtrail::arch::x86
