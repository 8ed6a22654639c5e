// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/signal_frame.hpp"

#include <array>
#include <cstring>
#include <span>

#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

// Offsets of the saved pc from the stack pointer at a handler's first instruction.
// rt_sigframe of x86-64: pretcode 8, then ucontext: flags 8, link 8, stack 24, r8..rsp 16 * 8.
constexpr std::uint64_t kAmd64Rip = 8 + 40 + 16 * 8;
// sigframe of i386: pretcode 4, sig 4, then sigcontext with eip as its 15th word.
constexpr std::uint64_t kI386Eip = 8 + 14 * 4;
// rt_sigframe of i386: pretcode 4, sig 4, pinfo 4, puc 4, siginfo 128, flags 4, link 4, stack 12.
constexpr std::uint64_t kI386RtEip = 16 + 128 + 20 + 14 * 4;

/// On x86-64 the flags follow the pc; on i386 cs lies in between.
constexpr std::uint64_t kFlagsBehindPc = 8;

/// Reads pc and flags, which both lie within any frame, by one request.
template <typename Word>
std::optional<SavedPc> read_saved(Process& process, TraceeAddr at) {
  std::array<std::uint8_t, kFlagsBehindPc + 2> bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  Word word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return SavedPc{.pc = TraceeAddr{word}, .at = at, .flags = bytes[kFlagsBehindPc + 1]};
}

}  // namespace

std::optional<SavedPc> saved_pc(Thread& thread, Process& process, TraceeAddr first,
                                TraceeAddr second) {
  const auto regs = thread.user_regs();
  if (!regs) return std::nullopt;
  const auto only_if_expected = [&](std::optional<SavedPc> saved) {
    if (saved && saved->pc != first && saved->pc != second) saved.reset();
    return saved;
  };
  if (process.isa() == arch::Isa::kAmd64) {
    return only_if_expected(read_saved<std::uint64_t>(process, regs->sp() + kAmd64Rip));
  }
  for (const std::uint64_t offset : {kI386RtEip, kI386Eip}) {
    if (auto found = only_if_expected(read_saved<std::uint32_t>(process, regs->sp() + offset))) {
      return found;
    }
  }
  return std::nullopt;
}

void set_saved_trap_flag(Process& process, const SavedPc& saved, bool set) {
  constexpr std::uint8_t kTrapFlag = 0x01;  // of the second byte
  const std::array<std::uint8_t, 1> byte{
      static_cast<std::uint8_t>(set ? saved.flags | kTrapFlag : saved.flags & ~kTrapFlag)};
  if (byte[0] != saved.flags) (void)process.write_data(saved.at + kFlagsBehindPc + 1, byte);
}

}  // namespace backtrail::tracee
