// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/wait_status.hpp"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/ptrace.h>

namespace backtrail::tracee {
namespace {

int stop_status(int signal, int event = 0) {
  return (event << 16) | (signal << 8) | 0x7f;
}

TEST(WaitStatus, DecodesEnds) {
  const WaitStatus exited = WaitStatus::decode(3 << 8);
  EXPECT_EQ(exited.kind, WaitKind::kExited);
  EXPECT_EQ(exited.exit_code, 3);
  EXPECT_TRUE(exited.ended());
  EXPECT_FALSE(exited.stopped());

  const WaitStatus killed = WaitStatus::decode(SIGSEGV | 0x80);
  EXPECT_EQ(killed.kind, WaitKind::kSignalled);
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_TRUE(killed.core_dumped);
  EXPECT_TRUE(killed.ended());
  EXPECT_FALSE(WaitStatus::decode(SIGKILL).core_dumped);
}

TEST(WaitStatus, TellsSignalAndSystemCallStopsApart) {
  const WaitStatus trap = WaitStatus::decode(stop_status(SIGTRAP));
  EXPECT_EQ(trap.kind, WaitKind::kStopped);
  EXPECT_EQ(trap.signal, SIGTRAP);
  const WaitStatus syscall = WaitStatus::decode(stop_status(SIGTRAP | 0x80));
  EXPECT_EQ(syscall.kind, WaitKind::kSyscall);
  EXPECT_TRUE(syscall.stopped());
}

TEST(WaitStatus, DecodesEvents) {
  const WaitStatus exec = WaitStatus::decode(stop_status(SIGTRAP, PTRACE_EVENT_EXEC));
  EXPECT_TRUE(exec.is_event(PTRACE_EVENT_EXEC));
  EXPECT_FALSE(exec.is_event(PTRACE_EVENT_FORK));
  EXPECT_FALSE(exec.is_group_stop());
  const WaitStatus group = WaitStatus::decode(stop_status(SIGTTIN, PTRACE_EVENT_STOP));
  EXPECT_TRUE(group.is_group_stop());
  EXPECT_FALSE(group.is_interrupt_stop());
  const WaitStatus interrupt = WaitStatus::decode(stop_status(SIGTRAP, PTRACE_EVENT_STOP));
  EXPECT_TRUE(interrupt.is_interrupt_stop());
  EXPECT_FALSE(interrupt.is_group_stop());
}

TEST(WaitStatus, NamesSignals) {
  EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(signal_name(34), "SIG34");
  EXPECT_EQ(signal_name(99), "signal 99");
  EXPECT_EQ(WaitStatus::decode(stop_status(SIGTRAP, PTRACE_EVENT_EXEC)).describe(),
            "event exec SIGTRAP");
}

}  // namespace
}  // namespace backtrail::tracee
