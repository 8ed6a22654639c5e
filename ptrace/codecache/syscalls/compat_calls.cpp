// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/compat_calls.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <sys/syscall.h>

#include "arch/cpu/syscall_abi.hpp"

namespace backtrail::tracee::cache {
namespace {

/// All arguments have 32 bits.
using Arguments = std::array<std::uint32_t, 6>;

/// Where the kernel finds the arguments of a plain call.
enum class Source : std::uint8_t {
  kRegisters,  ///< In the same order.
  kMemory,     ///< In the same order, in memory that the first argument points to.
  kAttach,     ///< ipc(SHMAT, id, flags, result, address).
};

struct CompatCall {
  std::uint32_t number;  ///< 32-bit programs' number.
  long plain;            ///< SYS_ number of the same call; the offset of mmap2 counts pages.
  Source source = Source::kRegisters;
};
/// Calls whose effect depends on where they map, unmap or protect: a row for each that
/// call_around() judges. From arch/x86/entry/syscalls/syscall_32.tbl and ipc/syscall.c in the
/// kernel.
constexpr std::array kCompatCalls{CompatCall{90, SYS_mmap, Source::kMemory},
                                  CompatCall{91, SYS_munmap},
                                  CompatCall{117, SYS_shmat, Source::kAttach},
                                  CompatCall{125, SYS_mprotect},
                                  CompatCall{163, SYS_mremap},
                                  CompatCall{192, SYS_mmap},
                                  CompatCall{219, SYS_madvise},
                                  CompatCall{257, SYS_remap_file_pages},
                                  CompatCall{380, SYS_pkey_mprotect},
                                  CompatCall{397, SYS_shmat}};

const CompatCall* find_call(const arch::cpu::UserRegs& regs) {
  // The kernel uses 32 bits of the number.
  const auto number = static_cast<std::uint32_t>(syscall_number(regs));
  const auto* found = std::ranges::find(kCompatCalls, number, &CompatCall::number);
  return found == kCompatCalls.end() ? nullptr : found;
}

Arguments arguments_in(const arch::cpu::UserRegs& regs) {
  using arch::cpu::UserReg;
  constexpr std::array kOrder{UserReg::kRbx, UserReg::kRcx, UserReg::kRdx,
                              UserReg::kRsi, UserReg::kRdi, UserReg::kRbp};
  Arguments arguments{};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    arguments.at(i) = static_cast<std::uint32_t>(regs[kOrder.at(i)]);
  }
  return arguments;
}

std::optional<Arguments> arguments_at(TraceeAddr address, const ReadMemory& read) {
  std::array<std::uint8_t, sizeof(Arguments)> bytes{};
  if (read(address, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<Arguments>(bytes);
}

/// The version of ipc() is in the upper half of its number; the kernel refuses version 1.
std::optional<Arguments> arguments_of_attach(const Arguments& ipc) {
  constexpr std::uint32_t kShmat = 21;
  constexpr unsigned kVersionShift = 16;
  const auto& [call, id, flags, result, address, unused] = ipc;
  if ((call & 0xffffU) != kShmat || call >> kVersionShift == 1) return std::nullopt;
  return Arguments{id, address, flags};
}

}  // namespace

bool may_have_plain_call(const arch::cpu::UserRegs& regs) {
  return find_call(regs) != nullptr;
}

std::optional<arch::cpu::UserRegs> as_plain_call(const arch::cpu::UserRegs& regs,
                                                 const ReadMemory& read) {
  const CompatCall* call = find_call(regs);
  if (call == nullptr) return std::nullopt;
  std::optional arguments{arguments_in(regs)};
  switch (call->source) {
    case Source::kRegisters:
      break;
    case Source::kMemory:
      arguments = arguments_at(TraceeAddr{arguments->front()}, read);
      break;
    case Source::kAttach:
      arguments = arguments_of_attach(*arguments);
      break;
  }
  if (!arguments) return std::nullopt;
  arch::cpu::UserRegs plain = regs;
  set_syscall_number(plain, static_cast<std::uint64_t>(call->plain));
  for (std::size_t i = 0; i < arguments->size(); ++i) {
    set_syscall_argument(plain, i, arguments->at(i));
  }
  return plain;
}

}  // namespace backtrail::tracee::cache
