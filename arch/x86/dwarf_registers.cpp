// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/dwarf_registers.hpp"

#include <algorithm>
#include <array>

#include "arch/base/bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

using enum UserReg;

constexpr std::array<UserReg, 17> kAmd64Order{kRax, kRdx, kRcx, kRbx, kRsi, kRdi, kRbp, kRsp, kR8,
                                              kR9,  kR10, kR11, kR12, kR13, kR14, kR15, kRip};
constexpr std::array<UserReg, 9> kI386Order{kRax, kRcx, kRdx, kRbx, kRsp, kRbp, kRsi, kRdi, kRip};

/// Registers of struct sigcontext in order (x86-64, <asm/sigcontext.h>).
constexpr std::array<UserReg, 17> kSignalOrder{kR8,  kR9,  kR10, kR11, kR12, kR13, kR14, kR15, kRdi,
                                               kRsi, kRbp, kRbx, kRdx, kRax, kRcx, kRsp, kRip};
/// uc_flags, uc_link and uc_stack precede it.
constexpr std::size_t kSignalContextOffset = 40;

}  // namespace

unsigned DwarfRegisters::sp_number(Isa isa) {
  return isa == Isa::kAmd64 ? 7 : 4;
}

DwarfRegisters dwarf_registers(const UserRegs& user, Isa isa) {
  DwarfRegisters out{isa, {}};
  if (isa == Isa::kAmd64) {
    for (const UserReg reg : kAmd64Order) out.values.push_back(user[reg]);
  } else {
    for (const UserReg reg : kI386Order) out.values.push_back(user[reg] & 0xffffffffU);
  }
  return out;
}

DwarfRegisters interrupted_registers(Isa isa, std::span<const std::uint8_t> code,
                                     std::span<const std::uint8_t> frame) {
  // mov $15,%rax or %eax; syscall
  constexpr std::array<std::uint8_t, 9> kLong{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  constexpr std::array<std::uint8_t, 7> kShort{0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
  const auto is = [&](std::span<const std::uint8_t> shape) {
    return code.size() >= shape.size() && std::equal(shape.begin(), shape.end(), code.begin());
  };
  if (isa != Isa::kAmd64 || frame.size() < kSignalContextBytes || !(is(kLong) || is(kShort))) {
    return {isa, {}};
  }
  UserRegs user;
  for (std::size_t i = 0; i < kSignalOrder.size(); ++i) {
    user[kSignalOrder[i]] = load_le<std::uint64_t>(frame, kSignalContextOffset + i * 8);
  }
  return dwarf_registers(user, isa);
}

}  // namespace backtrail::arch::x86
