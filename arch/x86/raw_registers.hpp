// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Registers as the kernel provides them, without gdb's order and names.

#include <array>
#include <cstdint>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::arch::x86 {

/// Index into UserRegs::words, in the order of struct user_regs_struct (x86-64, <sys/user.h>;
/// checked at compile time in ptrace/os). A 64-bit tracer uses this form for 32-bit processes too.
enum class UserReg : std::uint8_t {
  kR15,
  kR14,
  kR13,
  kR12,
  kRbp,
  kRbx,
  kR11,
  kR10,
  kR9,
  kR8,
  kRax,
  kRcx,
  kRdx,
  kRsi,
  kRdi,
  kOrigRax,
  kRip,
  kCs,
  kEflags,
  kRsp,
  kSs,
  kFsBase,
  kGsBase,
  kDs,
  kEs,
  kFs,
  kGs,
};
inline constexpr std::size_t kUserRegCount = 27;

/// General registers of one thread (PTRACE_GETREGS).
struct UserRegs {
  std::array<std::uint64_t, kUserRegCount> words{};

  [[nodiscard]] std::uint64_t& operator[](UserReg r) { return words[static_cast<std::size_t>(r)]; }
  [[nodiscard]] std::uint64_t operator[](UserReg r) const {
    return words[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] TraceeAddr pc() const { return TraceeAddr{(*this)[UserReg::kRip]}; }
  void set_pc(TraceeAddr pc) { (*this)[UserReg::kRip] = pc.value(); }
  [[nodiscard]] TraceeAddr sp() const { return TraceeAddr{(*this)[UserReg::kRsp]}; }
  bool operator==(const UserRegs&) const = default;
};

/// All registers of one thread. `xsave` is the NT_X86_XSTATE area in the standard (non-compacted)
/// format, with the CPU's own offsets (CPUID leaf 0DH; Intel and AMD differ), or the 512-byte
/// FXSAVE area on CPUs without XSAVE.
struct RawRegisters {
  UserRegs user;
  std::vector<std::uint8_t> xsave;
};

}  // namespace backtrail::arch::x86
