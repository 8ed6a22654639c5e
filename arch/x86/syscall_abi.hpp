// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which registers a system call uses. Source: syscall(2), "Architecture calling conventions".

#include <array>
#include <cstddef>
#include <cstdint>

#include "arch/x86/raw_registers.hpp"
#include "arch/x86/syscall_insn.hpp"

namespace backtrail::arch::x86 {

inline constexpr std::array<UserReg, 6> kSyscallArguments{
    UserReg::kRdi, UserReg::kRsi, UserReg::kRdx, UserReg::kR10, UserReg::kR8, UserReg::kR9};

/// The registers of a call's number and arguments, with their encodings in instructions.
struct EncodedRegister {
  UserReg reg;
  std::uint8_t encoding;
};
inline constexpr std::array<EncodedRegister, 7> kSyscallInputs{{{UserReg::kRax, 0},
                                                                {UserReg::kRdi, 7},
                                                                {UserReg::kRsi, 6},
                                                                {UserReg::kRdx, 2},
                                                                {UserReg::kR10, 10},
                                                                {UserReg::kR8, 8},
                                                                {UserReg::kR9, 9}}};

/// Returns the number of the call that a thread makes if it is before the instruction. The kernel
/// ignores the upper half.
[[nodiscard]] inline std::uint32_t syscall_number(const UserRegs& regs) {
  return static_cast<std::uint32_t>(regs[UserReg::kRax]);
}
inline void set_syscall_number(UserRegs& regs, std::uint64_t number) {
  regs[UserReg::kRax] = number;
}

/// Returns argument `index`, from 0 to 5, before and during the call.
[[nodiscard]] inline std::uint64_t syscall_argument(const UserRegs& regs, std::size_t index) {
  return regs[kSyscallArguments.at(index)];
}
inline void set_syscall_argument(UserRegs& regs, std::size_t index, std::uint64_t value) {
  regs[kSyscallArguments.at(index)] = value;
}

/// The register that holds the result after the call; errors are -errno.
inline constexpr UserReg kSyscallResult = UserReg::kRax;
[[nodiscard]] inline std::uint64_t syscall_result(const UserRegs& regs) {
  return regs[kSyscallResult];
}
/// Least result that is an error: -4095 (MAX_ERRNO in the kernel's linux/err.h).
inline constexpr std::uint64_t kFirstSyscallError = ~std::uint64_t{4095} + 1;

/// The register that holds the number of the call that a thread is in, or kNoSystemCall.
inline constexpr UserReg kSyscallInProgress = UserReg::kOrigRax;
/// Returns true if the thread is in a call, or has just ended one that may be repeated.
[[nodiscard]] inline bool in_syscall(const UserRegs& regs) {
  return static_cast<std::int64_t>(regs[kSyscallInProgress]) >= 0;
}
/// Makes the kernel take the thread for one that is in no call: it repeats none when it resumes.
inline void leave_syscall(UserRegs& regs) {
  regs[kSyscallInProgress] = kNoSystemCall;
}

}  // namespace backtrail::arch::x86
