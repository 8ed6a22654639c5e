// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/seccomp_filter.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <random>

#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

constexpr std::uint32_t kNobodys = 0x1fff;  ///< No system call has this number.
constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArguments = offsetof(seccomp_data, args);

sock_filter statement(int code, std::uint32_t k) {
  return BPF_STMT(static_cast<std::uint16_t>(code), k);
}

sock_filter jump(int code, std::uint32_t k, unsigned yes, unsigned no) {
  return BPF_JUMP(static_cast<std::uint16_t>(code), k, static_cast<std::uint8_t>(yes),
                  static_cast<std::uint8_t>(no));
}

sock_filter load_number() {
  return statement(BPF_LD | BPF_W | BPF_ABS, kNumber);
}

sock_filter answer(std::uint32_t what) {
  return statement(BPF_RET | BPF_K, what);
}

/// Makes a random filter that allows all calls except kNobodys, whose errno encodes the result of
/// random arithmetic on the call.
std::vector<sock_filter> program_by_chance(std::mt19937& random) {
  const auto any = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>{0, count - 1}(random);
  };
  const auto number = [&] { return static_cast<std::uint32_t>(any(3) == 0 ? random() : any(40)); };
  constexpr std::array kOperations{BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR,
                                   BPF_AND, BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG};
  constexpr std::array kJumps{BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
  std::vector<sock_filter> out{load_number(), jump(BPF_JMP | BPF_JEQ | BPF_K, kNobodys, 1, 0),
                               answer(SECCOMP_RET_ALLOW)};
  // The kernel requires every word of the scratch memory to be written first.
  for (std::uint32_t i = 0; i < BPF_MEMWORDS; ++i) out.push_back(statement(BPF_ST, i));
  const std::size_t length = 5 + any(30);
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t left = length - i - 1;
    const int source = any(2) == 0 ? BPF_K : BPF_X;
    const auto word = static_cast<std::uint32_t>(any(16) * 4);
    const auto place = static_cast<std::uint32_t>(any(BPF_MEMWORDS));
    const int operation = kOperations.at(any(kOperations.size()));
    const bool shifts = operation == BPF_LSH || operation == BPF_RSH;
    std::uint32_t k = number();
    if (shifts) k %= 32;
    if (operation == BPF_DIV && k == 0) k = 3;
    switch (any(9)) {
      case 0:
        // The instruction pointer of the kernel's call is unknown here.
        out.push_back(statement(BPF_LD | BPF_W | BPF_ABS, word == 8 || word == 12 ? 0 : word));
        break;
      case 1:
        out.push_back(statement((any(2) == 0 ? BPF_LD : BPF_LDX) | BPF_IMM, number()));
        break;
      case 2:
        out.push_back(statement((any(2) == 0 ? BPF_LD : BPF_LDX) | BPF_MEM, place));
        break;
      case 3:
        out.push_back(statement((any(2) == 0 ? BPF_LD : BPF_LDX) | BPF_W | BPF_LEN, 0));
        break;
      case 4:
        out.push_back(statement(any(2) == 0 ? BPF_ST : BPF_STX, place));
        break;
      case 5:
        out.push_back(statement(BPF_MISC | (any(2) == 0 ? BPF_TAX : BPF_TXA), 0));
        break;
      case 6:
        out.push_back(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(any(left + 1))));
        break;
      case 7:
        out.push_back(jump(BPF_JMP | kJumps.at(any(kJumps.size())) | source, number(),
                           static_cast<unsigned>(any(left + 1)),
                           static_cast<unsigned>(any(left + 1))));
        break;
      default:
        out.push_back(statement(BPF_ALU | operation | (operation == BPF_NEG ? BPF_K : source), k));
        break;
    }
  }
  out.push_back(statement(BPF_ALU | BPF_AND | BPF_K, 0xfff));
  out.push_back(statement(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO));
  out.push_back(statement(BPF_RET | BPF_A, 0));
  return out;
}

/// Returns true if the kernel kills a process that makes the call.
template <typename Call>
bool kills(const Call& make) {
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::prctl(PR_SET_DUMPABLE, 0);
    (void)make();
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
}

/// Runs in a child. Returns 0 if the kernel judged every call as SeccompFilter does; the number of
/// the first other call, from 1 on; or 100 if the filter was refused.
int compare_with_kernel(std::vector<sock_filter> program, const std::vector<seccomp_data>& calls) {
  const SeccompFilter filter{program};
  const sock_fprog wanted{static_cast<unsigned short>(program.size()), program.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &wanted) != 0) {
    return 100;
  }
  int which = 0;
  for (const seccomp_data& call : calls) {
    ++which;
    const std::uint32_t verdict = filter.judge(call);
    const auto* args = call.args;
    const auto make = [&] {
      return ::syscall(call.nr, args[0], args[1], args[2], args[3], args[4], args[5]);
    };
    if ((verdict & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO) {
      if (!kills(make)) return which;
      continue;
    }
    errno = 0;
    const long got = make();
    const auto expected = static_cast<int>(verdict & SECCOMP_RET_DATA);
    if (errno != expected || got != (expected == 0 ? 0 : -1)) return which;
  }
  return 0;
}

TEST(SeccompFilter, JudgesAsTheKernelDoes) {
  std::mt19937 random{20260101};
  for (int round = 0; round < 150; ++round) {
    const auto program = program_by_chance(random);
    std::vector<seccomp_data> calls;
    for (int i = 0; i < 20; ++i) {
      seccomp_data& call = calls.emplace_back(system_call(kNobodys, {}));
      for (auto& argument : call.args) {
        argument = i % 2 == 0 ? random() % 40 : random() * (1ULL << 32U) + random();
      }
    }
    const pid_t child = ::fork();
    if (child == 0) ::_exit(compare_with_kernel(program, calls));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "round " << round << ", signal " << WTERMSIG(status);
    ASSERT_EQ(WEXITSTATUS(status), 0) << "round " << round;
  }
}

TEST(SeccompFilter, SaysWhatPassesWhateverTheArgumentsAre) {
  const SeccompFilter filter{{
      statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      jump(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      answer(SECCOMP_RET_KILL_PROCESS),
      load_number(),
      jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
      answer(SECCOMP_RET_ALLOW),
      jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 4),
      statement(BPF_LD | BPF_W | BPF_ABS, kArguments + 8),
      jump(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1),
      answer(SECCOMP_RET_ALLOW),
      answer(SECCOMP_RET_TRAP),
      answer(SECCOMP_RET_ERRNO | EPERM),
  }};
  EXPECT_TRUE(filter.always_allows(SYS_read));
  EXPECT_FALSE(filter.always_allows(SYS_ioctl));
  EXPECT_FALSE(filter.always_allows(SYS_write));
  EXPECT_FALSE(filter.looks_at_place());
  EXPECT_EQ(filter.judge(system_call(SYS_ioctl, {1, 7})), SECCOMP_RET_ALLOW);
  EXPECT_EQ(filter.judge(system_call(SYS_ioctl, {7, 1})), SECCOMP_RET_TRAP);
  EXPECT_EQ(filter.judge(system_call(SYS_write, {})), SECCOMP_RET_ERRNO | EPERM);
  seccomp_data other = system_call(SYS_read, {});
  other.arch = AUDIT_ARCH_I386;
  EXPECT_EQ(filter.judge(other), SECCOMP_RET_KILL_PROCESS);
}

TEST(SeccompFilter, SeveralLetPassWhatAllDo) {
  SeccompFilters filters;
  EXPECT_TRUE(filters.allow(system_call(SYS_read, {})));
  filters.add(SeccompFilter{{answer(SECCOMP_RET_LOG)}});
  EXPECT_TRUE(filters.allow(system_call(SYS_read, {})));
  EXPECT_FALSE(filters.always_allow(SYS_read));  // a logged call is not left to translated code
  filters.add(SeccompFilter{{load_number(), jump(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 1),
                             answer(SECCOMP_RET_ERRNO), answer(SECCOMP_RET_ALLOW)}});
  EXPECT_FALSE(filters.allow(system_call(SYS_read, {})));
  EXPECT_TRUE(filters.allow(system_call(SYS_write, {})));
  EXPECT_FALSE(filters.look_at_place());
  filters.add(SeccompFilter{{statement(BPF_LD | BPF_W | BPF_ABS, 12), answer(SECCOMP_RET_ALLOW)}});
  EXPECT_TRUE(filters.look_at_place());
}

TEST(SeccompFilter, WhatTheKernelWouldRefuseKills) {
  const seccomp_data call = system_call(SYS_read, {});
  const auto judged = [&](std::vector<sock_filter> program) {
    return SeccompFilter{std::move(program)}.judge(call);
  };
  EXPECT_EQ(judged({}), SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(judged({load_number()}), SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(judged({statement(BPF_JMP | BPF_JA, ~0U), answer(SECCOMP_RET_ALLOW)}),
            SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(judged({statement(BPF_LD | BPF_W | BPF_ABS, 64), answer(SECCOMP_RET_ALLOW)}),
            SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(judged({statement(BPF_LD | BPF_W | BPF_ABS, 2), answer(SECCOMP_RET_ALLOW)}),
            SECCOMP_RET_KILL_THREAD);
  EXPECT_EQ(judged({statement(BPF_ALU | BPF_DIV | BPF_X, 0), answer(SECCOMP_RET_ALLOW)}),
            SECCOMP_RET_KILL_THREAD);
}

}  // namespace
}  // namespace backtrail::tracee
