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

template <typename Word>
std::optional<TraceeAddr> read_word(Process& process, TraceeAddr address) {
  std::array<std::uint8_t, sizeof(Word)> bytes{};
  if (process.read_memory(address, bytes) != bytes.size()) return std::nullopt;
  Word word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  return TraceeAddr{word};
}

}  // namespace

std::optional<SavedPc> saved_pc(Thread& thread, Process& process, TraceeAddr first,
                                TraceeAddr second) {
  const auto regs = thread.user_regs();
  if (!regs) return std::nullopt;
  const auto look_at = [&](std::optional<TraceeAddr> pc, TraceeAddr at) -> std::optional<SavedPc> {
    if (!pc || (*pc != first && *pc != second)) return std::nullopt;
    return SavedPc{*pc, at};
  };
  if (process.isa() == arch::Isa::kAmd64) {
    const TraceeAddr at = regs->sp() + kAmd64Rip;
    return look_at(read_word<std::uint64_t>(process, at), at);
  }
  for (const std::uint64_t offset : {kI386RtEip, kI386Eip}) {
    const TraceeAddr at = regs->sp() + offset;
    if (auto found = look_at(read_word<std::uint32_t>(process, at), at)) return found;
  }
  return std::nullopt;
}

void set_saved_trap_flag(Process& process, const SavedPc& saved, bool set) {
  constexpr std::uint8_t kTrapFlag = 0x01;  // of the second byte
  std::array<std::uint8_t, 1> byte{};
  const TraceeAddr at = saved.at + kFlagsBehindPc + 1;
  if (process.read_memory(at, byte) != byte.size()) return;
  const std::uint8_t before = byte[0];
  byte[0] = static_cast<std::uint8_t>(set ? before | kTrapFlag : before & ~kTrapFlag);
  if (byte[0] != before) (void)process.write_data(at, byte);
}

}  // namespace backtrail::tracee
