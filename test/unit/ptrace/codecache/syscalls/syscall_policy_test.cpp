// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/syscall_policy.hpp"

#include <array>
#include <csignal>
#include <cstring>
#include <vector>

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/source/affinity_calls.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;
using translate::CallCheck;
using translate::Policy;
using translate::PolicyRange;

arch::cpu::UserRegs call(long number, const std::vector<std::uint64_t>& arguments = {}) {
  arch::cpu::UserRegs regs;
  set_syscall_number(regs, static_cast<std::uint64_t>(number));
  for (std::size_t i = 0; i < arguments.size(); ++i) set_syscall_argument(regs, i, arguments[i]);
  return regs;
}

TEST(SyscallPolicy, LeavesCallsThatChangeThreadsOrProgramsToTheServer) {
  const auto& calls = inline_system_calls();
  for (const long number : {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve, SYS_execveat,
                            SYS_exit, SYS_exit_group, SYS_seccomp, SYS_prctl, SYS_mremap, SYS_shmat,
                            SYS_setrlimit, SYS_io_uring_setup, SYS_userfaultfd,
                            SYS_process_vm_writev, SYS_rt_sigsuspend, SYS_restart_syscall}) {
    EXPECT_EQ(calls.at(static_cast<std::size_t>(number)), CallCheck::kNever) << number;
  }
}

/// The recorder may have narrowed it.
TEST(SyscallPolicy, LeavesCallsThatConcernTheAffinityToTheServer) {
  const auto& calls = inline_system_calls();
  EXPECT_TRUE(concerns_affinity(SYS_sched_getaffinity));
  EXPECT_FALSE(concerns_affinity(SYS_getpid));
  for (std::size_t number = 0; number < calls.size(); ++number) {
    if (concerns_affinity(number)) {
      EXPECT_EQ(calls.at(number), CallCheck::kNever) << number;
    }
  }
}

TEST(SyscallPolicy, MakesACallOfUnknownNumberOnlyIfItIsAlwaysMade) {
  std::array<std::uint8_t, translate::kPolicyBytes> policy{};
  for (const bool watches_writes : {false, true}) {
    write_numbers(inline_system_calls(), watches_writes, policy);
    const auto made = [&](long number) {
      return policy.at(static_cast<std::size_t>(Policy::kNumbers) +
                       static_cast<std::size_t>(number)) == 0;
    };
    EXPECT_TRUE(made(SYS_read));
    EXPECT_EQ(made(SYS_write), !watches_writes);
    EXPECT_FALSE(made(SYS_mmap));
    EXPECT_FALSE(made(SYS_execve));
  }
}

TEST(SyscallPolicy, WritesTheExecutableRanges) {
  std::array<std::uint8_t, translate::kPolicyBytes> policy{};
  ExecutableMap map;
  write_policy(map, {}, policy);
  const auto range = [&](std::size_t index) {
    PolicyRange found;
    std::memcpy(&found,
                &policy.at(static_cast<std::size_t>(Policy::kRanges) + index * sizeof found),
                sizeof found);
    return found;
  };
  // The first is empty, the second ends the array.
  EXPECT_EQ(range(0).negated_end, 0);
  EXPECT_EQ(range(1).negated_begin, 0);
  EXPECT_EQ(policy.at(static_cast<std::size_t>(Policy::kProtections) + PROT_READ), 0);
  EXPECT_EQ(policy.at(static_cast<std::size_t>(Policy::kProtections) + (PROT_READ | PROT_EXEC)), 1);
  EXPECT_EQ(policy.at(static_cast<std::size_t>(Policy::kMapFlags) + MAP_PRIVATE), 0);
  EXPECT_EQ(policy.at(static_cast<std::size_t>(Policy::kMapFlags) + (MAP_PRIVATE | MAP_FIXED)), 1);
}

TEST(SyscallPolicy, KnowsWhatACallMayDoToMappings) {
  constexpr std::uint64_t kAt = 0x10000;
  const auto change = [](const arch::cpu::UserRegs& regs) { return mapping_change_of(regs); };
  const auto protect = change(call(SYS_mprotect, {kAt, 1, PROT_READ | PROT_EXEC}));
  EXPECT_EQ(protect.begin, TraceeAddr{kAt});
  EXPECT_EQ(protect.end, TraceeAddr{kAt + kPageBytes});
  EXPECT_TRUE(protect.new_code);
  EXPECT_FALSE(change(call(SYS_munmap, {kAt, 1})).new_code);
  // The kernel chooses the place: nothing that was mapped before changes.
  const auto anywhere = change(call(SYS_mmap, {kAt, 1, PROT_EXEC, MAP_PRIVATE}));
  EXPECT_EQ(anywhere.begin, anywhere.end);
  EXPECT_TRUE(anywhere.new_code);
  EXPECT_EQ(change(call(SYS_mmap, {kAt, 1, 0, MAP_FIXED})).begin, TraceeAddr{kAt});
  // A segment may be of any length.
  EXPECT_GT(change(call(SYS_shmat)).end, TraceeAddr{1ULL << 46});
}

TEST(SyscallPolicy, KnowsWhetherACallChangesContents) {
  constexpr std::uint64_t kAt = 0x10000;
  const auto change = [](long number, const std::vector<std::uint64_t>& arguments) {
    return mapping_change_of(call(number, arguments));
  };
  EXPECT_TRUE(change(SYS_mprotect, {kAt, 1, PROT_READ | PROT_EXEC}).keeps_contents);
  EXPECT_FALSE(change(SYS_mprotect, {kAt, 1, PROT_READ | PROT_EXEC}).lets_write);
  EXPECT_FALSE(change(SYS_mprotect, {kAt, 1, PROT_READ | PROT_WRITE}).keeps_contents);
  EXPECT_TRUE(change(SYS_mprotect, {kAt, 1, PROT_READ | PROT_WRITE}).lets_write);
  EXPECT_TRUE(change(SYS_madvise, {kAt, 1, MADV_WILLNEED}).keeps_contents);
  EXPECT_FALSE(change(SYS_madvise, {kAt, 1, MADV_WILLNEED}).leaves_out_children);
  EXPECT_TRUE(change(SYS_madvise, {kAt, 1, MADV_DONTFORK}).leaves_out_children);
  EXPECT_FALSE(change(SYS_madvise, {kAt, 1, MADV_DONTNEED}).keeps_contents);
  EXPECT_FALSE(change(SYS_munmap, {kAt, 1}).keeps_contents);
  EXPECT_FALSE(change(SYS_mmap, {kAt, 1, PROT_READ, MAP_PRIVATE | MAP_FIXED}).keeps_contents);
  EXPECT_TRUE(change(SYS_shmat, {1, 0, 0}).keeps_contents);
  EXPECT_FALSE(change(SYS_shmat, {1, kAt, SHM_REMAP}).keeps_contents);
  const auto moved =
      change(SYS_mremap, {kAt, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, kAt + 8 * kPageBytes});
  EXPECT_EQ(moved.begin, TraceeAddr{kAt});
  EXPECT_EQ(moved.other_begin, TraceeAddr{kAt + 8 * kPageBytes});
  EXPECT_EQ(moved.other_end, TraceeAddr{kAt + 9 * kPageBytes});
}

TEST(SyscallPolicy, TellsTheEffectOfACallByItsArguments) {
  using Effect = SyscallEffect;
  const auto effect = [](long number, const std::vector<std::uint64_t>& arguments = {}) {
    return effect_of(call(number, arguments));
  };
  EXPECT_EQ(effect(SYS_getpid), Effect::kNone);
  EXPECT_EQ(effect(SYS_mmap, {0, 1, PROT_READ, MAP_PRIVATE}), Effect::kNone);
  EXPECT_EQ(effect(SYS_mmap, {0, 1, PROT_EXEC, MAP_PRIVATE}), Effect::kMappings);
  EXPECT_EQ(effect(SYS_ptrace, {PTRACE_CONT}), Effect::kNone);
  EXPECT_EQ(effect(SYS_ptrace, {PTRACE_TRACEME}), Effect::kTraces);
  EXPECT_EQ(effect(SYS_seccomp, {SECCOMP_SET_MODE_STRICT, 0, 0}), Effect::kSandbox);
  EXPECT_EQ(effect(SYS_seccomp, {SECCOMP_SET_MODE_STRICT, 1, 0}), Effect::kNone);
  EXPECT_EQ(effect(SYS_seccomp, {SECCOMP_SET_MODE_FILTER}), Effect::kFilter);
  EXPECT_EQ(effect(SYS_prctl, {PR_SET_SECCOMP, SECCOMP_MODE_FILTER}), Effect::kFilter);
  EXPECT_EQ(effect(SYS_rt_sigaction, {SIGSEGV, 0}), Effect::kNone);
  EXPECT_EQ(effect(SYS_rt_sigaction, {SIGSEGV, 1}), Effect::kSegvAction);
  EXPECT_EQ(effect(SYS_rt_sigaction, {SIGUSR1, 1}), Effect::kNone);
  EXPECT_EQ(effect(SYS_setrlimit, {RLIMIT_AS, 1}), Effect::kAddressLimit);
  EXPECT_EQ(effect(SYS_setrlimit, {RLIMIT_CORE, 1}), Effect::kNone);
  EXPECT_EQ(effect(SYS_mlockall, {MCL_CURRENT}), Effect::kLocksAll);
  EXPECT_EQ(effect(SYS_mlockall, {MCL_FUTURE}), Effect::kNone);
}

TEST(SyscallPolicy, ReadsTheProcessAndPlacesOfALimit) {
  const auto limit = limit_call_of(call(SYS_prlimit64, {77, RLIMIT_AS, 0x1000, 0x2000}));
  ASSERT_TRUE(limit);
  EXPECT_EQ(limit->process, 77);
  EXPECT_EQ(limit->new_at, TraceeAddr{0x1000});
  EXPECT_EQ(limit->new_in, 2U);
  EXPECT_EQ(limit->old_at, TraceeAddr{0x2000});
  // The kernel uses 32 bits of the resource.
  EXPECT_TRUE(limit_call_of(call(SYS_getrlimit, {RLIMIT_AS | 1ULL << 32, 0x1000})));
  EXPECT_FALSE(limit_call_of(call(SYS_getrlimit, {RLIMIT_CORE, 0x1000})));
}

TEST(SyscallPolicy, KnowsWhoMayWriteWriteProtectedMemory) {
  const auto effect = [](long number, const std::vector<std::uint64_t>& arguments = {}) {
    return write_effect_of(call(number, arguments));
  };
  EXPECT_EQ(effect(SYS_read), WriteEffect::kArguments);
  EXPECT_EQ(effect(SYS_readv), WriteEffect::kBuffers);
  EXPECT_EQ(effect(SYS_clone3), WriteEffect::kClone);
  EXPECT_EQ(effect(SYS_io_uring_setup), WriteEffect::kAnyTime);
  EXPECT_EQ(effect(SYS_setrlimit, {RLIMIT_DATA}), WriteEffect::kAnyTime);
  EXPECT_EQ(effect(SYS_prlimit64, {0, RLIMIT_DATA, 0}), WriteEffect::kArguments);
}

TEST(SyscallPolicy, KnowsWhetherACoreMayBeWrittenAfterwards) {
  EXPECT_EQ(keeps_core(call(SYS_prctl, {PR_SET_DUMPABLE, 0})), false);
  EXPECT_EQ(keeps_core(call(SYS_prctl, {PR_SET_DUMPABLE, 1})), true);
  EXPECT_EQ(keeps_core(call(SYS_prctl, {PR_SET_DUMPABLE, 2})), std::nullopt);
  EXPECT_EQ(keeps_core(call(SYS_getpid)), std::nullopt);
}

TEST(SyscallPolicy, KnowsCallsOfOtherForms) {
  const auto is_other = [](const std::vector<std::uint8_t>& code) {
    return is_call_of_other_form(arch::Isa::kAmd64, TraceeAddr{0x1000}, code);
  };
  EXPECT_TRUE(is_other({0xcd, 0x80, 0x90})) << "int 0x80";
  EXPECT_TRUE(is_other({0x66, 0xcd, 0x80})) << "with a prefix";
  EXPECT_TRUE(is_other({0x48, 0x0f, 0x05})) << "rex.w syscall";
  EXPECT_TRUE(is_other({0x0f, 0x34})) << "sysenter";
  EXPECT_FALSE(is_other({0x0f, 0x05, 0xcd, 0x80})) << "syscall";
  EXPECT_FALSE(is_other({0x90, 0xcd, 0x80})) << "nop";
  EXPECT_FALSE(is_other({0xcd, 0x81}));
  EXPECT_FALSE(is_other({0xb8, 0xcd, 0x80, 0x0f, 0x05})) << "mov";
  EXPECT_FALSE(is_other({}));
  EXPECT_FALSE(is_call_of_other_form(arch::Isa::kI386, TraceeAddr{0x1000},
                                     std::vector<std::uint8_t>{0xcd, 0x80}));
  EXPECT_LT(any_mapping_change().begin, any_mapping_change().end);
  EXPECT_TRUE(any_mapping_change().new_code);
}

}  // namespace
}  // namespace backtrail::tracee::cache
