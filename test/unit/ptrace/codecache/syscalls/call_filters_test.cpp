// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/call_filters.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "ptrace/codecache/syscalls/syscall_policy.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kAnswer = BPF_RET | BPF_K;

/// Kills for calls of this number. If `bits` is not 0, only if the third argument has one of them.
SeccompFilters killing(std::uint32_t number, std::uint32_t bits = 0) {
  const auto with = static_cast<std::uint16_t>(bits != 0 ? BPF_JMP | BPF_JSET | BPF_K
                                                         : BPF_JMP | BPF_JGE | BPF_K);
  SeccompFilters filters;
  filters.add(SeccompFilter{{
      BPF_STMT(kLoad, offsetof(seccomp_data, nr)),
      BPF_JUMP(kEqual, number, 0, 3),
      BPF_STMT(kLoad, offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t)),
      BPF_JUMP(with, bits, 0, 1),
      BPF_STMT(kAnswer, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(kAnswer, SECCOMP_RET_ALLOW),
  }});
  return filters;
}

TEST(CallFilters, SayWhyTranslatedCodeMustNotRun) {
  EXPECT_EQ(why_not_behind({}), "");
  EXPECT_EQ(why_not_behind(killing(SYS_tgkill)), "");
  EXPECT_EQ(why_not_behind(killing(SYS_rt_sigaction)), "a seccomp filter forbids rt_sigaction");
  SeccompFilters place;
  place.add(SeccompFilter{{BPF_STMT(kLoad, offsetof(seccomp_data, instruction_pointer)),
                           BPF_STMT(kAnswer, SECCOMP_RET_ALLOW)}});
  EXPECT_EQ(why_not_behind(place), "a seccomp filter looks at where system calls are made");
}

TEST(CallFilters, KnowWhatThreadsAndPagesMayDo) {
  EXPECT_TRUE(let_threads_stop({}));
  EXPECT_FALSE(let_threads_stop(killing(SYS_rt_sigprocmask)));
  EXPECT_TRUE(allow_protected_pages({}));
  EXPECT_TRUE(allow_protected_pages(killing(SYS_mprotect, PROT_GROWSDOWN)));
  // A page that was write-protected could not be unprotected.
  EXPECT_FALSE(allow_protected_pages(killing(SYS_mprotect, PROT_WRITE)));
  EXPECT_FALSE(allow_protected_pages(killing(SYS_mprotect, PROT_EXEC)));
}

TEST(CallFilters, LeaveOtherCallsToTranslatedCode) {
  const auto& all = inline_system_calls();
  auto calls = all;
  restrict_inline_calls(calls, {});
  EXPECT_EQ(calls, all);
  restrict_inline_calls(calls, killing(SYS_read, PROT_EXEC));
  EXPECT_EQ(calls[SYS_read], arch::x86::translate::CallCheck::kNever);
  calls[SYS_read] = all[SYS_read];
  EXPECT_EQ(calls, all);
}

TEST(CallFilters, LeaveUsualFutexesToTranslatedCode) {
  const auto with = [](std::uint32_t operation) {
    SeccompFilters filters;
    filters.add(SeccompFilter{{
        BPF_STMT(kLoad, offsetof(seccomp_data, nr)),
        BPF_JUMP(kEqual, SYS_futex, 0, 3),
        BPF_STMT(kLoad, offsetof(seccomp_data, args) + sizeof(std::uint64_t)),
        BPF_JUMP(kEqual, operation, 0, 1),
        BPF_STMT(kAnswer, SECCOMP_RET_ERRNO),
        BPF_STMT(kAnswer, SECCOMP_RET_ALLOW),
    }});
    auto calls = inline_system_calls();
    restrict_inline_calls(calls, filters);
    return calls[SYS_futex];
  };
  using arch::x86::translate::CallCheck;
  EXPECT_EQ(with(6), CallCheck::kUsualFutex);  // FUTEX_LOCK_PI
  for (const std::uint32_t operation : arch::x86::translate::kUsualFutexes) {
    EXPECT_EQ(with(operation), CallCheck::kNever);
  }
}

TEST(CallFilters, AreKnownWhereTheyWereSeenOrAreOurs) {
  ProcStatus status;
  EXPECT_TRUE(filters_are_known(status, false, 0));
  status.seccomp = SECCOMP_MODE_STRICT;
  EXPECT_FALSE(filters_are_known(status, true, 5));
  status.seccomp = SECCOMP_MODE_FILTER;
  EXPECT_FALSE(filters_are_known(status, true, 5));  // the kernel does not say how many
  status.seccomp_filters = 1'000;
  EXPECT_FALSE(filters_are_known(status, true, 5));
  EXPECT_FALSE(filters_are_known(status, false, 1'000));
}

}  // namespace
}  // namespace backtrail::tracee::cache
