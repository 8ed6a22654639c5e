// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A process that is stopped and executes nothing of its own: its registers and memory stand for
/// those of a recorded program. Remote system calls work.

#include <array>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

class StoppedChild final : private ProcessObserver {
 public:
  /// The child has a copy of the test's memory, at the same addresses. It stands at a SYSCALL
  /// instruction.
  StoppedChild() {
    pid_ = ::fork();
    if (pid_ == 0) {
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile bool forever = true; forever;) continue;
    }
    EXPECT_TRUE(request::seize(pid_, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
    EXPECT_TRUE(request::interrupt(pid_));
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, __WALL), pid_);
    process_ = *Process::open(pid_, pid_, /*attached=*/false, *this);
    process_->code_writers = std::make_shared<CodeWriters>();
    process_->code_writers->add(*process_);
    process_->add_thread(pid_).note_stop(WaitStatus::decode(status));
  }
  ~StoppedChild() override {
    process_->cache_space.reset();
    process_.reset();
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, __WALL);
  }
  StoppedChild(const StoppedChild&) = delete;
  StoppedChild& operator=(const StoppedChild&) = delete;

  [[nodiscard]] Process& process() { return *process_; }
  [[nodiscard]] Thread& thread() { return *process_->find(pid_); }
  [[nodiscard]] arch::cpu::UserRegs regs() { return *thread().user_regs(); }

  /// Gives the process a space; returns the thread's part of the memory.
  ThreadMemory take_space() {
    process_->cache_space =
        *CacheSpace::of(thread(), {.sums = std::make_shared<SourceStatistics>()});
    return process_->cache_space->memory().thread(*process_->cache_space->threads().take(thread()));
  }

  /// The thread is about to make this system call; returns its registers.
  arch::cpu::UserRegs stand_before(std::uint64_t number,
                                   std::initializer_list<std::uint64_t> arguments) {
    using arch::cpu::UserReg;
    static constexpr std::array<std::uint8_t, 2> kSyscall{0x0f, 0x05};
    static constexpr std::array kArguments{UserReg::kRdi, UserReg::kRsi, UserReg::kRdx,
                                           UserReg::kR10};
    arch::cpu::UserRegs now = regs();
    now[UserReg::kRax] = number;
    now[UserReg::kOrigRax] = arch::cpu::kNoSystemCall;
    now[UserReg::kRip] = reinterpret_cast<std::uint64_t>(kSyscall.data());
    const auto* argument = kArguments.begin();
    for (const std::uint64_t value : arguments) now[*argument++] = value;
    EXPECT_TRUE(thread().set_user_regs(now));
    process_->forget_insn_bytes();
    return now;
  }
  /// The thread has made the call before which it stood.
  void stand_behind(std::uint64_t result) {
    using arch::cpu::UserReg;
    arch::cpu::UserRegs now = regs();
    now[UserReg::kRax] = result;
    now[UserReg::kRip] += arch::cpu::kSyscallInsnBytes;
    EXPECT_TRUE(thread().set_user_regs(now));
  }

 private:
  void on_begin(Process&) override {}
  void on_inherit(Process&, Process&) override {}
  void on_new_image(Process&) override {}
  void on_end(Process&) override {}

  pid_t pid_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace backtrail::tracee::cache
