// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/process_memory.hpp"

#include <array>
#include <vector>

#include "ptrace/os/procfs.hpp"
#include "ptrace/tracee/breakpoint_table.hpp"
#include "test/integration/traced_program.hpp"
#include "test/support/own_reads.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;

TraceeAddr register_address(pid_t tid, UserReg reg) {
  return TraceeAddr{request::peek_user_reg(tid, reg).value()};
}

TEST(ProcessMemory, GivesAShortCountAtABorder) {
  TracedProgram program{"memory_border"};
  ASSERT_EQ(program.run_to_trap(), program.pid());
  const TraceeAddr border = register_address(program.pid(), UserReg::kRax);
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  std::vector<std::uint8_t> bytes(8192);
  EXPECT_EQ(memory->read(border - 100, bytes), 100U);
  EXPECT_EQ(bytes[99], 'b');
  EXPECT_EQ(memory->read(border - 4096, std::span{bytes}.first(4096)), 4096U);
  EXPECT_EQ(memory->read(border, bytes), 0U);
  EXPECT_EQ(memory->read(TraceeAddr{0}, bytes), 0U);
  EXPECT_EQ(memory->read(TraceeAddr{~std::uint64_t{0} - 10}, bytes), 0U);
}

TEST(ProcessMemory, WritesAcrossABorderFail) {
  TracedProgram program{"memory_border"};
  ASSERT_EQ(program.run_to_trap(), program.pid());
  const TraceeAddr border = register_address(program.pid(), UserReg::kRax);
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  const std::vector<std::uint8_t> data(20, 1);
  const auto written = memory->write(border - 10, data);
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().is(TraceErrc::kUnreadable));
  EXPECT_EQ(written.error().detail, border.value());
}

TEST(ProcessMemory, WritesReadOnlyText) {
  TracedProgram program{"three_steps"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  const TraceeAddr entry = request::peek_pc(program.pid()).value();
  // mov $3, %edi is at entry + 5; its immediate is the exit code.
  const std::uint8_t code = 9;
  ASSERT_TRUE(memory->write(entry + 6, {&code, 1}));
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 9);
}

TEST(ProcessMemory, IsNotAskedForAnyMoreOnceAllHaveEnded) {
  TracedProgram program{"three_steps"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  const TraceeAddr entry = request::peek_pc(program.pid()).value();
  std::array<std::uint8_t, 4> bytes{};
  EXPECT_EQ(memory->read(entry, bytes), bytes.size());
  EXPECT_EQ(memory->read(TraceeAddr{0}, bytes), 0U);  // unmapped: a later read must still work
  EXPECT_EQ(memory->read(entry, bytes), bytes.size());
  ASSERT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(memory->read(entry, bytes), 0U);
  const auto before = test::own_reads();
  if (!before) GTEST_SKIP() << "the kernel does not count reads (/proc/self/io)";
  constexpr int kTimes = 1000;
  for (int i = 0; i < kTimes; ++i) EXPECT_EQ(memory->read(entry, bytes), 0U);
  EXPECT_LT(test::own_reads().value_or(kTimes) - *before, kTimes / 2U);
}

TEST(ProcessMemory, OutlivesTheLeader) {
  TracedProgram program{"leader_exits"};
  const pid_t tid = program.run_to_trap();
  ASSERT_NE(tid, 0);
  ASSERT_NE(tid, program.pid());
  ASSERT_TRUE(ProcFs{}.stat(program.pid()).value().zombie());
  const TraceeAddr value = register_address(tid, UserReg::kRax);
  std::array<std::uint8_t, 8> bytes{};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->read(value, bytes), bytes.size());
  EXPECT_EQ(bytes[0], 0x88);
  bytes[0] = 1;
  EXPECT_TRUE(memory->write(value, bytes));
}

TEST(ProcessMemory, KeepsWorkingWhenItsThreadEnds) {
  TracedProgram program{"leader_exits"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  const pid_t tid = program.run_to_trap();
  ASSERT_NE(tid, 0);
  std::array<std::uint8_t, 8> bytes{};
  EXPECT_EQ(memory->read(register_address(tid, UserReg::kRax), bytes), bytes.size());
}

TEST(ProcessMemory, IsGoneWithTheProcess) {
  TracedProgram program{"plain"};
  const pid_t pid = program.pid();
  auto memory = ProcessMemory::open(pid);
  ASSERT_TRUE(memory);
  const TraceeAddr pc = request::peek_pc(pid).value();
  EXPECT_EQ(program.run_to_trap(), 0);
  std::uint8_t byte = 0;
  EXPECT_EQ(memory->read(pc, {&byte, 1}), 0U);
  const auto written = memory->write(pc, {&byte, 1});
  ASSERT_FALSE(written);
  EXPECT_TRUE(written.error().is(TraceErrc::kTraceeGone));
  EXPECT_TRUE(ProcessMemory::open(pid).error().is(TraceErrc::kTraceeGone));
}

TEST(ProcessMemory, CarriesBreakpoints) {
  TracedProgram program{"three_steps"};
  auto memory = ProcessMemory::open(program.pid());
  ASSERT_TRUE(memory);
  BreakpointTable table{*memory};
  const TraceeAddr entry = request::peek_pc(program.pid()).value();
  ASSERT_TRUE(table.insert(entry + 5));
  ASSERT_EQ(program.run_to_trap(), program.pid());
  EXPECT_EQ(request::peek_pc(program.pid()).value(), entry + 6);
  ASSERT_TRUE(table.remove(entry + 5));
  ASSERT_TRUE(request::poke_user_reg(program.pid(), UserReg::kRip, entry.value() + 5));
  EXPECT_EQ(program.run_to_trap(), 0);
  EXPECT_EQ(program.end().exit_code, 3);
}

}  // namespace
}  // namespace backtrail::tracee
