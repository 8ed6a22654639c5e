// SPDX-License-Identifier: Apache-2.0
// Handlers that return from translated code.

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>

#include <sys/syscall.h>
#include <ucontext.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "arch/x86/translate/program_state.hpp"
#include "test/unit/arch/x86/translate/stepped.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {
namespace {

/// mov r10, r8 / mov r11, r9 / mov eax, 15 / syscall
constexpr std::array<std::uint8_t, 13> kReturn{0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xcb, 0xb8,
                                               15,   0,    0,    0,    0x0f, 0x05};
constexpr std::uint64_t kCallOffset = 11;
constexpr std::size_t kRax = 0;
constexpr std::size_t kRsp = 4;
constexpr std::size_t kR8 = 8;
constexpr std::size_t kR9 = 9;
constexpr std::size_t kR10 = 10;
constexpr std::size_t kR11 = 11;
constexpr std::uint64_t kCode64 = 0x33;
constexpr std::uint64_t kFrameFlags = 0x8d7;
constexpr std::uint64_t kSegvBit = 1ULL << (SIGSEGV - 1);

class TranslatedReturns : public testing::Test {
 protected:
  TranslatedReturns() {
    std::copy(kReturn.begin(), kReturn.end(), program_.bytes().begin());
    write_far_jump(program_.bytes().subspan(kReturn.size()),
                   std::bit_cast<std::uintptr_t>(&bt_test_leave));
    const auto part = [&](Policy which) {
      return run_.policy().subspan(static_cast<std::size_t>(which), 256);
    };
    for (std::size_t i = 0; i < 256; ++i) {
      part(Policy::kTrapFlag)[i] = static_cast<std::uint8_t>(i & 1U);
      part(Policy::kSegvBit)[i] = (i << 8U & kSegvBit) != 0 ? 1 : 0;
    }
    for (std::size_t i = 0; i < before_.general.size(); ++i) before_.general.at(i) = 0x1111 * i;
    before_.general[kRsp] = stack_.address().value() + kPageBytes / 4;
    before_.flags = 0xad7;
    for (std::size_t i = 0; i < after_.size(); ++i) after_.at(i) = 0x7000'0000'0000 + i;
    after_[kRsp] = stack_.address().value() + kPageBytes * 3 / 4;
    calls_[SYS_rt_sigreturn] = CallCheck::kReturn;
  }
  [[nodiscard]] TraceeAddr end() const { return program_.address() + kReturn.size(); }

  ucontext_t& make_frame(std::uint64_t flags, std::uint64_t cs) {
    ucontext_t context{};
    constexpr unsigned long kStrictSs = 6;  // UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS
    context.uc_flags = kStrictSs;
    constexpr std::array kRegisters{REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
    auto& regs = context.uc_mcontext.gregs;
    for (std::size_t i = 0; i < kRegisters.size(); ++i) {
      regs[kRegisters.at(i)] = std::bit_cast<greg_t>(after_.at(i));
    }
    regs[REG_RIP] = std::bit_cast<greg_t>(end().value());
    regs[REG_EFL] = std::bit_cast<greg_t>(flags);
    regs[REG_CSGSFS] = std::bit_cast<greg_t>(cs | 0x2bULL << 48U);
    auto* frame = std::bit_cast<ucontext_t*>(before_.general[kRsp]);
    std::memcpy(frame, &context, kFrameBytes);
    return *frame;
  }
  [[nodiscard]] std::vector<std::uint8_t> stack() const {
    return {stack_.bytes().begin(), stack_.bytes().end()};
  }
  std::optional<MachineState> run() {
    const CodeSource source{
        .read = [&](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
          const std::uint64_t offset = at - program_.address();
          if (offset >= kReturn.size()) return 0;
          const std::size_t count = std::min(out.size(), kReturn.size() - offset);
          std::copy_n(kReturn.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
          return count;
        },
        .stop_before = [&](TraceeAddr at) { return at == end(); }};
    return run_.run(source, program_.address(), end(), before_, {.system_calls = &calls_});
  }

  /// Expects the state before the call, at any instruction that stands for it.
  void expect_not_returned(const ProgramState& found) const {
    const std::uint64_t offset = found.pc - program_.address();
    ASSERT_LE(offset, kCallOffset);
    for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
      std::uint64_t expected = before_.general.at(i);
      if (i == kR10 && offset >= 3) expected = before_.general[kR8];
      if (i == kR11 && offset >= 6) expected = before_.general[kR9];
      if (i == kRax && offset == kCallOffset) expected = SYS_rt_sigreturn;
      EXPECT_EQ(found.regs[kGeneralRegisters.at(i)], expected) << i << " at " << offset;
    }
    EXPECT_EQ(found.log, run_.log_begin());
  }
  void expect_returned(const ProgramState& found) const {
    EXPECT_EQ(found.pc, end());
    EXPECT_EQ(found.log, run_.log_begin() + kLogEntryBytes);
    for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
      EXPECT_EQ(found.regs[kGeneralRegisters.at(i)], after_.at(i)) << i;
    }
  }
  /// Runs it in steps, and checks each. Returns the numbers of steps before and after the call.
  std::pair<int, int> run_in_steps() {
    std::pair<int, int> stops;
    const Branch returned = run_.returned_range();
    const auto look = [&](TraceeAddr pc, const MachineState& state) {
      const auto regs = user_regs(state);
      const auto read = [](Slot which) { return TranslatedRun::slot(which); };
      if (pc >= returned.first && pc < returned.second) {
        ++stops.second;
        expect_returned(state_behind_handler(regs, read));
        return;
      }
      const Superblock& block = run_.current();
      const std::uint64_t offset = pc - block.address;
      if (offset >= block.code.size()) return;
      const auto found =
          state_in_superblock(block.entry_at(static_cast<std::uint32_t>(offset)), regs, read);
      if ((found.flags & kCommitted) != 0) return;
      ++stops.first;
      EXPECT_EQ(state.flags, before_.flags);
      expect_not_returned(found);
    };
    const Stepped stepped{{run_.code_range()}, look};
    (void)run();
    return stops;
  }

  Pages program_{kPageBytes, true};
  Pages stack_{kPageBytes, false};
  TranslatedRun run_;
  InlineSystemCalls calls_{};
  MachineState before_;
  std::array<std::uint64_t, 16> after_{};
};

TEST_F(TranslatedReturns, AreAsTheCpuAloneLeavesThem) {
  make_frame(kFrameFlags, kCode64);
  const auto frame = stack();
  const auto found = run();
  ASSERT_TRUE(found);
  EXPECT_EQ(stack(), frame);
  const MachineState natively = TranslatedRun::run_natively(program_.address(), before_);
  EXPECT_EQ(*found, natively);
  EXPECT_EQ(found->general, after_);
  EXPECT_EQ(run_.taken().at(program_.address() + kCallOffset), end());
}

TEST_F(TranslatedReturns, ShowTheProgramsStateWhereverTheyAreStopped) {
  make_frame(kFrameFlags, kCode64);
  const auto [before, behind] = run_in_steps();
  EXPECT_GT(before, 150);
  EXPECT_GT(behind, 5);
  TranslatedRun::slot(Slot::kReturnStops) = 1;
  const auto [left, none] = run_in_steps();
  EXPECT_GT(left, 5);
  EXPECT_EQ(none, 0);
  TranslatedRun::slot(Slot::kReturnStops) = 0;
}

TEST_F(TranslatedReturns, AreLeftToWhoWantsToSeeThem) {
  TranslatedRun::slot(Slot::kReturnStops) = 1;
  make_frame(kFrameFlags, kCode64);
  EXPECT_FALSE(run());
  TranslatedRun::slot(Slot::kReturnStops) = 0;
  EXPECT_TRUE(run());
  constexpr std::uint64_t kCode32 = 0x23;
  make_frame(kFrameFlags, kCode32);
  EXPECT_FALSE(run());
  make_frame(kFrameFlags | kTrapFlag, kCode64);
  EXPECT_FALSE(run());
  const auto frame = stack();
  EXPECT_EQ(stack(), frame);
}

TEST_F(TranslatedReturns, TellWhetherSigsegvIsBlockedThen) {
  for (const bool blocked : {true, false}) {
    ucontext_t& frame = make_frame(kFrameFlags, kCode64);
    const std::uint64_t mask = blocked ? kSegvBit : 0;
    std::memcpy(&frame.uc_sigmask, &mask, sizeof mask);
    TranslatedRun::slot(Slot::kSegvBlocked) = blocked ? 0 : 1;
    EXPECT_TRUE(run());
    EXPECT_EQ(TranslatedRun::slot(Slot::kSegvBlocked) != 0, blocked);
  }
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
