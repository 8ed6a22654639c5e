// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/ptrace_request.hpp"

#include "ptrace/os/debug_register_check.hpp"
#include "test/integration/traced_program.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;

TEST(PtraceRequest, ReadsAndWritesRegisters) {
  TracedProgram program{"three_steps"};
  auto regs = request::read_registers(program.pid());
  ASSERT_TRUE(regs);
  EXPECT_EQ(regs->user.pc(), request::peek_pc(program.pid()).value());
  EXPECT_GE(regs->xsave.size(), 512U);
  regs->user[UserReg::kR12] = 0x1234567890;
  regs->xsave[160] = 0x5a;                              // xmm0, in the legacy area of every format.
  if (regs->xsave.size() > 512) regs->xsave[512] |= 2;  // XSTATE_BV: SSE in use.
  ASSERT_TRUE(request::write_registers(program.pid(), *regs));
  const auto again = request::read_registers(program.pid());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->user, regs->user);
  EXPECT_EQ(again->xsave[160], 0x5a);
}

TEST(PtraceRequest, SetsDebugRegisters) {
  if (!debug_registers_trap()) GTEST_SKIP() << kNoDebugTraps;
  TracedProgram program{"three_steps"};
  const std::uint64_t pc = request::peek_pc(program.pid()).value().value();
  ASSERT_TRUE(request::write_debug_register(program.pid(), 0, pc + 5));
  ASSERT_TRUE(request::write_debug_register(program.pid(), 7, 1));
  EXPECT_EQ(request::read_debug_register(program.pid(), 0).value(), pc + 5);
  ASSERT_EQ(program.run_to_trap(), program.pid());
  EXPECT_EQ(request::peek_pc(program.pid()).value().value(), pc + 5);
  EXPECT_EQ(request::read_debug_register(program.pid(), 6).value() & 0xf, 1U);
  EXPECT_TRUE(
      request::read_debug_register(program.pid(), 8).error().is(TraceErrc::kInvalidArgument));
}

TEST(PtraceRequest, KnowsWhereASystemCallIs) {
  TracedProgram program{"three_steps"};
  ASSERT_TRUE(request::cont_syscall(program.pid()));
  int raw = 0;
  ASSERT_EQ(::waitpid(program.pid(), &raw, __WALL), program.pid());
  EXPECT_EQ(WaitStatus::decode(raw).kind, WaitKind::kSyscall);
  const auto info = request::syscall_info(program.pid());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->phase, request::SyscallPhase::kEntry);
  EXPECT_EQ(info->number, 60U);
  EXPECT_EQ(info->arguments[0], 3U);
}

TEST(PtraceRequest, InterruptsARunningThread) {
  LaunchSpec spec;
  spec.program = "sleep";
  spec.arguments = {"1000"};
  spec.through_shell = false;
  TracedProgram program{spec};
  ASSERT_TRUE(request::cont(program.pid()));
  ASSERT_TRUE(request::interrupt(program.pid()));
  int raw = 0;
  ASSERT_EQ(::waitpid(program.pid(), &raw, __WALL), program.pid());
  EXPECT_TRUE(WaitStatus::decode(raw).is_interrupt_stop());
}

TEST(PtraceRequest, NamesThreadsThatAreGone) {
  TracedProgram program{"three_steps"};
  const pid_t pid = program.pid();
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_TRUE(request::cont(pid).error().is(TraceErrc::kTraceeGone));
  EXPECT_TRUE(request::read_user_regs(pid).error().is(TraceErrc::kTraceeGone));
  EXPECT_TRUE(request::read_xstate(pid).error().is(TraceErrc::kTraceeGone));
}

}  // namespace
}  // namespace backtrail::tracee
