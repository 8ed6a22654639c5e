#pragma once
/// @file
/// The SYSCALL instruction, and how Linux shows a thread that is in no system call.

#include <array>
#include <cstdint>

namespace backtrail::arch::x86 {

/// SDM vol. 2B, SYSCALL.
inline constexpr std::array<std::uint8_t, 2> kSyscallInsn{0x0f, 0x05};
inline constexpr std::uint64_t kSyscallInsnBytes = kSyscallInsn.size();
/// orig_rax of a thread that is in no system call (arch/x86/kernel/ptrace.c).
inline constexpr std::uint64_t kNoSystemCall = ~std::uint64_t{0};

}  // namespace backtrail::arch::x86
