// SPDX-License-Identifier: Apache-2.0
// Programs do not see the trap flag of a step: not in their flags, not in flags that they push, and
// not in r11 after a system call.

#include "ptrace/tracee/trap_flag.hpp"

#include <array>
#include <csignal>
#include <string>

#include <gtest/gtest.h>

#include "elf_symbols.hpp"
#include "engine_driver.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;

constexpr std::uint64_t kFlag = 0x100;

/// A program that sets its own trap flag, stopped at one of its places by an engine that records
/// by `source`, or nothing.
class TrapFlags : public testing::TestWithParam<std::optional<SourceKind>> {
 protected:
  void run_to(const char* place) {
    const BreakpointSpec there{.kind = BreakpointKind::kSoftware,
                               .address = symbol_of("own_steps", place)};
    ASSERT_TRUE(driver_.engine.insert(pid_, there));
    if (GetParam()) {
      ASSERT_TRUE(driver_.engine.enable_trace(id_, {TraceFormat::kBts, 1 << 16}));
    }
    ASSERT_TRUE(driver_.run());
    ASSERT_TRUE(driver_.engine.remove(pid_, there));
    ASSERT_EQ(regs().pc(), there.address);
  }
  void step() {
    const TraceeAddr before = regs().pc();
    driver_.resume(id_, {.kind = ResumeKind::kStep});
    const auto event = driver_.await();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kStep);
    ASSERT_NE(regs().pc(), before);
    EXPECT_EQ(regs()[UserReg::kEflags] & kFlag, 0U);
  }
  void expect_good_end() {
    driver_.engine.set_pass_signals({SIGTRAP});  // the program's own, later
    const auto event = driver_.run();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, 0);
  }
  arch::cpu::UserRegs regs() { return driver_.engine.find(id_)->user_regs().value(); }
  std::uint8_t byte_at(TraceeAddr address) {
    std::array<std::uint8_t, 1> byte{};
    EXPECT_EQ(driver_.engine.find(pid_)->read_memory(address, byte), 1U);
    return byte[0];
  }

  EngineDriver driver_{GetParam().value_or(SourceKind::kStep)};
  pid_t pid_ = driver_.launch("own_steps");
  ThreadId id_{pid_, pid_};
};

TEST_P(TrapFlags, AreNotLeftByAStepOverPopf) {
  run_to("plain_popf");
  for (int i = 0; i < 3 && !HasFailure(); ++i) step();
  expect_good_end();
}

TEST_P(TrapFlags, AreNotInFlagsThatAStepPushes) {
  run_to("plain_pushf");
  step();
  EXPECT_EQ(byte_at(regs().sp() + 1) & kFlag >> 8, 0U);
  expect_good_end();
}

TEST_P(TrapFlags, AreNotInR11AfterASteppedSystemCall) {
  run_to("plain_syscall");
  step();
  EXPECT_EQ(regs()[UserReg::kR11] & kFlag, 0U);
  EXPECT_EQ(regs()[UserReg::kRcx], regs().pc().value());
  expect_good_end();
}

INSTANTIATE_TEST_SUITE_P(Sources, TrapFlags,
                         testing::Values(std::nullopt, SourceKind::kStep, SourceKind::kCache),
                         [](const auto& sources) -> std::string {
                           if (!sources.param) return "None";
                           return *sources.param == SourceKind::kStep ? "Step" : "Cache";
                         });

}  // namespace
}  // namespace backtrail::tracee
