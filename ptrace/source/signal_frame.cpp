#include "ptrace/source/signal_frame.hpp"

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

template <typename Word>
std::optional<TraceeAddr> read_word(Process& process, TraceeAddr address) {
  std::array<std::uint8_t, sizeof(Word)> bytes{};
  if (process.read_memory(address, bytes) != bytes.size()) return std::nullopt;
  Word word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return TraceeAddr{word};
}

}  // namespace

std::optional<TraceeAddr> interrupted_pc(Thread& thread, Process& process, TraceeAddr first,
                                         TraceeAddr second) {
  const auto regs = thread.user_regs();
  if (!regs) return std::nullopt;
  const auto matches = [&](std::optional<TraceeAddr> pc) {
    return pc && (*pc == first || *pc == second);
  };
  if (process.isa() == arch::Isa::kAmd64) {
    const auto pc = read_word<std::uint64_t>(process, regs->sp() + kAmd64Rip);
    return matches(pc) ? pc : std::nullopt;
  }
  for (const std::uint64_t offset : {kI386RtEip, kI386Eip}) {
    const auto pc = read_word<std::uint32_t>(process, regs->sp() + offset);
    if (matches(pc)) return pc;
  }
  return std::nullopt;
}

}  // namespace backtrail::tracee
