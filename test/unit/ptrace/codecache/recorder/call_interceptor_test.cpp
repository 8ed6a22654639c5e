// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/call_interceptor.hpp"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "ptrace/source/branch_source.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;
using Next = CallInterceptor::Next;

constexpr std::size_t kOtherThread = 5;

/// A child whose thread is about to make calls.
struct CallInterceptorTest : ::testing::Test {
  /// As a source does it. Returns false if the thread has to wait before it makes the call.
  bool begin(const SourceResume& how = {}) {
    if (calls.prepare(child.thread(), how) != Next::kGo) return false;
    calls.begin(child.thread(), child.regs(), how, memory ? &*memory : nullptr);
    return !calls.has_to_wait(child.thread(), how);
  }
  CacheSpace& space() { return *child.process().cache_space; }

  StoppedChild child;
  std::optional<ThreadMemory> memory;
  std::string disabled;
  CallInterceptor calls{child.process(), false, [this](const std::string& why) { disabled = why; }};
  const WaitStatus stop = child.thread().status();
};

const std::array<sock_filter, 1> allow_all{{{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}}};
const sock_fprog filter_program{allow_all.size(), const_cast<sock_filter*>(allow_all.data())};
const rlimit program_limit{1ULL << 40, 1ULL << 40};

std::uint64_t address_of(const void* object) {
  return reinterpret_cast<std::uint64_t>(object);
}

TEST_F(CallInterceptorTest, LeavesOtherCallsAlone) {
  memory = child.take_space();
  const auto before = child.stand_before(SYS_getpid, {});
  EXPECT_TRUE(begin());
  EXPECT_EQ(child.regs(), before);
  child.stand_behind(1);
  calls.end(child.thread());
  EXPECT_FALSE(calls.takes_request(stop));
  EXPECT_FALSE(calls.repeats(child.thread(), stop));
  EXPECT_EQ(child.regs()[UserReg::kRax], 1U);
  EXPECT_EQ(disabled, "");
}

TEST_F(CallInterceptorTest, LetsAFilterWaitForThreadsInTranslatedCode) {
  memory = child.take_space();
  space().threads().set_inside(kOtherThread, true);
  child.stand_before(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, address_of(&filter_program)});
  EXPECT_FALSE(begin());
  EXPECT_TRUE(space().gate_closed());
  EXPECT_FALSE(begin());
  space().threads().set_inside(kOtherThread, false);
  EXPECT_TRUE(begin());
  EXPECT_TRUE(space().gate_closed()) << "the call is not made yet";
  child.stand_behind(0);
  calls.end(child.thread());
  EXPECT_FALSE(space().gate_closed());
  EXPECT_TRUE(child.process().filters.empty()) << "the kernel knows of no new filter";
}

TEST_F(CallInterceptorTest, OpensTheGateForAnotherInstruction) {
  memory = child.take_space();
  space().threads().set_inside(kOtherThread, true);
  child.stand_before(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, address_of(&filter_program)});
  EXPECT_FALSE(begin());
  child.stand_before(SYS_getpid, {});
  EXPECT_TRUE(begin());
  EXPECT_FALSE(space().gate_closed());
}

TEST_F(CallInterceptorTest, OpensTheGateWhenTheThreadIsGone) {
  memory = child.take_space();
  space().threads().set_inside(kOtherThread, true);
  child.stand_before(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, address_of(&filter_program)});
  EXPECT_FALSE(begin());
  calls.release();
  EXPECT_FALSE(space().gate_closed());
  calls.release();
  EXPECT_FALSE(space().gate_closed()) << "released once only";
}

TEST_F(CallInterceptorTest, ASignalIsDeliveredWithoutWaiting) {
  memory = child.take_space();
  space().threads().set_inside(kOtherThread, true);
  child.stand_before(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, address_of(&filter_program)});
  EXPECT_TRUE(begin({.signal = SIGUSR1}));
}

TEST_F(CallInterceptorTest, RaisesALimitAndShowsTheProgramItsOwnCall) {
  memory = child.take_space();
  const auto before = child.stand_before(SYS_setrlimit, {RLIMIT_AS, address_of(&program_limit)});
  ASSERT_TRUE(begin());
  const std::uint64_t given_at = (memory->page() + CacheMemory::kLimitOffset).value();
  EXPECT_EQ(child.regs()[UserReg::kRsi], given_at);
  rlimit given{};
  ASSERT_EQ(
      child.process().read_memory(TraceeAddr{given_at},
                                  std::span{reinterpret_cast<std::uint8_t*>(&given), sizeof given}),
      sizeof given);
  EXPECT_GT(given.rlim_cur, program_limit.rlim_cur);
  ASSERT_EQ(::prlimit(child.process().pid(), RLIMIT_AS, &given, nullptr), 0);
  child.stand_behind(0);
  calls.end(child.thread());
  EXPECT_EQ(child.regs()[UserReg::kRsi], before[UserReg::kRsi]);
  EXPECT_EQ(child.regs()[UserReg::kRax], 0U);
  ASSERT_TRUE(child.process().address_limit.program());
  EXPECT_EQ(child.process().address_limit.program()->rlim_cur, program_limit.rlim_cur);
}

TEST_F(CallInterceptorTest, ALimitIsNotedAfterTheCallOnly) {
  memory = child.take_space();
  const auto before = child.stand_before(SYS_setrlimit, {RLIMIT_AS, address_of(&program_limit)});
  ASSERT_TRUE(begin());
  calls.end(child.thread());  // stopped by something else
  EXPECT_EQ(child.regs(), before);
  child.stand_behind(0);
  calls.end(child.thread());
  EXPECT_FALSE(child.process().address_limit.program());
}

TEST_F(CallInterceptorTest, ShowsADebuggerTheProgramsCall) {
  memory = child.take_space();
  const auto before = child.stand_before(SYS_setrlimit, {RLIMIT_AS, address_of(&program_limit)});
  ASSERT_TRUE(begin({.syscalls = true}));
  EXPECT_EQ(child.regs(), before);
}

TEST_F(CallInterceptorTest, LocksTheProgramsMemoryItself) {
  memory = child.take_space();
  child.stand_before(SYS_mlockall, {MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT});
  ASSERT_TRUE(begin());
  const auto changed = child.regs();
  // Where so much may not be locked, the call fails as the program's own.
  if (changed[UserReg::kRdi] != (MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) {
    EXPECT_EQ(changed[UserReg::kRdi], std::uint64_t{MCL_FUTURE | MCL_ONFAULT});
  }
  child.stand_behind(0);
  calls.end(child.thread());
  EXPECT_EQ(child.regs()[UserReg::kRdi], std::uint64_t{MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT});
}

TEST_F(CallInterceptorTest, ForgetsTheCallsOfTheOldProgram) {
  memory = child.take_space();
  child.stand_before(SYS_setrlimit, {RLIMIT_AS, address_of(&program_limit)});
  ASSERT_TRUE(begin());
  const auto now = child.regs();
  calls.forget();
  calls.end(child.thread());
  EXPECT_EQ(child.regs(), now);
}

TEST_F(CallInterceptorTest, LetsTheServersChildAskToBeTracedOnce) {
  child.process().reports_tracing = true;
  const auto before = child.stand_before(SYS_ptrace, {PTRACE_TRACEME});
  EXPECT_EQ(calls.prepare(child.thread(), {}), Next::kGoElsewhere);
  EXPECT_EQ(child.regs().pc(), before.pc() + arch::cpu::kSyscallInsnBytes);
  EXPECT_EQ(child.regs()[UserReg::kRax], 0U);
  child.stand_before(SYS_ptrace, {PTRACE_TRACEME});
  EXPECT_EQ(calls.prepare(child.thread(), {}), Next::kGo);
}

TEST_F(CallInterceptorTest, StopsBeforeAnotherProcessIsTraced) {
  StoppedChild other;
  child.process().code_writers->add(other.process());
  child.process().reports_tracing = true;
  const auto pid = static_cast<std::uint64_t>(other.process().pid());
  child.stand_before(SYS_ptrace, {PTRACE_ATTACH, pid});
  EXPECT_EQ(calls.prepare(child.thread(), {.signal = SIGUSR1}), Next::kGo);
  EXPECT_EQ(calls.prepare(child.thread(), {}), Next::kRequest);
  EXPECT_EQ(calls.trace_request(), other.process().pid());
  EXPECT_TRUE(calls.takes_request(stop));
  WaitStatus step;
  step.kind = WaitKind::kStopped;
  step.signal = SIGTRAP;
  EXPECT_FALSE(calls.takes_request(step));
  EXPECT_EQ(calls.trace_request(), 0);
}

TEST_F(CallInterceptorTest, DisablesTranslatedCodeForOtherSandboxes) {
  memory = child.take_space();
  child.stand_before(SYS_seccomp, {SECCOMP_SET_MODE_STRICT, 0, 0});
  EXPECT_TRUE(begin());
  EXPECT_NE(disabled, "");
}

}  // namespace
}  // namespace backtrail::tracee::cache
