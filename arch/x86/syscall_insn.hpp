// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The SYSCALL instruction, and orig_rax outside of system calls.

#include <array>
#include <cstddef>
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
/// True for code that begins with INT 0x80, which makes a system call of 32-bit programs.
[[nodiscard]] constexpr bool is_int80(std::span<const std::uint8_t> code) {
  return code.size() >= kSyscallInsnBytes && code[0] == 0xcd && code[1] == 0x80;
}
/// False for code without the bytes of any instruction that makes a system call: SYSCALL, SYSENTER,
/// INT 0x80, with or without prefixes. Whether its first instruction does, decode_insn() tells.
[[nodiscard]] constexpr bool has_syscall_opcode(std::span<const std::uint8_t> code) {
  for (std::size_t i = 1; i < code.size(); ++i) {
    const std::uint8_t first = code[i - 1];
    const std::uint8_t second = code[i];
    if (first == 0x0f && (second == kSyscallInsn[1] || second == 0x34)) return true;
    if (first == 0xcd && second == 0x80) return true;
  }
  return false;
}
/// Value of orig_rax in a thread outside of system calls (arch/x86/kernel/ptrace.c).
inline constexpr std::uint64_t kNoSystemCall = ~std::uint64_t{0};

}  // namespace backtrail::arch::x86
