// SPDX-License-Identifier: Apache-2.0
#include "test/unit/arch/x86/translate/stepped.hpp"

#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include <sys/syscall.h>
#include <ucontext.h>

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};
constexpr std::uint8_t kInt3 = 0xcc;
/// The CPU leaves RF set between iterations of a string instruction.
constexpr std::uint64_t kResumeFlag = 0x10000;
/// In encoding order.
constexpr std::array<int, 16> kContextSlots{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                            REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                            REG_R12, REG_R13, REG_R14, REG_R15};
constexpr std::size_t kAlternateStackBytes = 256UL * 1024;

struct Stepping {
  std::vector<Branch> ranges;
  Stepped::OnStop on_stop;
  std::vector<std::uint8_t> alternate_stack;
  stack_t stack_before{};
  struct sigaction action_before {};
  /// Place and original byte of an int3 after a system call.
  std::optional<std::pair<std::uint8_t*, std::uint8_t>> behind_call;
};

std::optional<Stepping>& stepping() {
  static std::optional<Stepping> only;
  return only;
}

MachineState state_of(const ucontext_t& context) {
  MachineState out;
  for (std::size_t i = 0; i < out.general.size(); ++i) {
    out.general.at(i) = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kContextSlots.at(i)]);
  }
  static_assert(sizeof out.vectors == sizeof context.uc_mcontext.fpregs->_xmm);
  std::memcpy(&out.vectors, &context.uc_mcontext.fpregs->_xmm, sizeof out.vectors);
  out.flags =
      static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_EFL]) & ~(kTrapFlag | kResumeFlag);
  return out;
}

bool is_in(const std::vector<Branch>& ranges, TraceeAddr pc) {
  for (const auto& [begin, end] : ranges) {
    if (begin <= pc && pc < end) return true;
  }
  return false;
}

/// Prepares a stop after SYSCALL. The CPU steps over SYSCALL and the next instruction at once:
/// SYSCALL clears the trap flag, and SYSRET counts as the instruction that restores it.
void step_over_call(std::uint8_t* call) {
  std::uint8_t* behind = call + kSystemCall.size();
  stepping()->behind_call.emplace(behind, std::exchange(*behind, kInt3));
}

void on_trap(int /*signal*/, siginfo_t* /*info*/, void* at) {
  auto& context = *static_cast<ucontext_t*>(at);
  auto& rip = context.uc_mcontext.gregs[REG_RIP];
  auto& flags = context.uc_mcontext.gregs[REG_EFL];
  Stepping& now = *stepping();
  if (now.behind_call) {
    *now.behind_call->first = now.behind_call->second;
    rip -= 1;
    now.behind_call.reset();
  }
  flags |= static_cast<greg_t>(kTrapFlag);
  const TraceeAddr pc{static_cast<std::uint64_t>(rip)};
  if (pc.value() == std::bit_cast<std::uintptr_t>(&bt_test_leave)) {
    flags &= ~static_cast<greg_t>(kTrapFlag);
    return;
  }
  if (!is_in(now.ranges, pc)) return;
  now.on_stop(pc, state_of(context));
  auto* insn = std::bit_cast<std::uint8_t*>(static_cast<std::uintptr_t>(rip));
  if (std::memcmp(insn, kSystemCall.data(), kSystemCall.size()) != 0) return;
  if (context.uc_mcontext.gregs[REG_RAX] == SYS_rt_sigreturn) {
    // The call comes back elsewhere, with the flags of the frame; the first instruction there is
    // not seen.
    auto* frame = std::bit_cast<ucontext_t*>(context.uc_mcontext.gregs[REG_RSP]);
    frame->uc_mcontext.gregs[REG_EFL] |= static_cast<greg_t>(kTrapFlag);
  } else {
    step_over_call(insn);
    flags &= ~static_cast<greg_t>(kTrapFlag);
  }
}

}  // namespace

Stepped::Stepped(std::vector<Branch> ranges, OnStop on_stop) {
  Stepping& now = stepping().emplace();
  now.ranges = std::move(ranges);
  now.on_stop = std::move(on_stop);
  // The stepped code's own stack, with the red zone, must stay untouched.
  now.alternate_stack.resize(kAlternateStackBytes);
  const stack_t stack{
      .ss_sp = now.alternate_stack.data(), .ss_flags = 0, .ss_size = now.alternate_stack.size()};
  struct sigaction action {};
  action.sa_sigaction = &on_trap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (::sigaltstack(&stack, &now.stack_before) != 0 ||
      ::sigaction(SIGTRAP, &action, &now.action_before) != 0) {
    throw std::runtime_error{"no handler for SIGTRAP"};
  }
}

Stepped::~Stepped() {
  ::sigaction(SIGTRAP, &stepping()->action_before, nullptr);
  ::sigaltstack(&stepping()->stack_before, nullptr);
  stepping().reset();
}

bool Stepped::active() {
  return stepping().has_value();
}

}  // namespace backtrail::arch::x86::translate
