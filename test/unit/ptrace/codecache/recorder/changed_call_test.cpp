// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/changed_call.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/cpu/syscall_abi.hpp"

namespace backtrail::tracee::cache {
namespace {

TEST(ChangedCall, ShowsTheProgramsArguments) {
  using arch::cpu::UserReg;
  arch::cpu::UserRegs program{};
  program[UserReg::kRip] = 0x1000;
  program[UserReg::kRax] = SYS_mlockall;
  program[UserReg::kRdi] = MCL_CURRENT;
  arch::cpu::UserRegs now = program;
  now[UserReg::kRax] = SYS_mlock;
  now[UserReg::kRdi] = 0;
  EXPECT_EQ(ChangedCall::restored(program, now), program) << "not made";
  now[UserReg::kRip] += arch::cpu::kSyscallInsnBytes;
  now[UserReg::kRax] = 7;
  const auto seen = ChangedCall::restored(program, now);
  EXPECT_EQ(seen[UserReg::kRdi], program[UserReg::kRdi]);
  EXPECT_EQ(seen[UserReg::kRax], 7U) << "its result";
}

}  // namespace
}  // namespace backtrail::tracee::cache
