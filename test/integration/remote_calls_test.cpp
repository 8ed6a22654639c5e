// SPDX-License-Identifier: Apache-2.0
// Remote calls of threads that are long in coming back, or never do.
#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee {
namespace {

using std::chrono::steady_clock;

bool wait_until(const std::function<bool()>& done) {
  const auto deadline = steady_clock::now() + std::chrono::minutes{1};
  while (!done()) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class RemoteCall : public testing::Test {
 protected:
  void TearDown() override {
    for (const Process* process : engine_.processes()) (void)engine_.kill(process->pid());
  }

  Thread* launch(const std::string& name, std::vector<std::string> arguments) {
    LaunchSpec spec;
    spec.program = std::string{BT_INFERIOR_DIR} + "/" + name;
    spec.arguments = std::move(arguments);
    spec.through_shell = false;
    const auto pid = engine_.launch(spec);
    return pid ? engine_.find(ThreadId{*pid, *pid}) : nullptr;
  }

  std::optional<StopEvent> await() {
    std::optional<StopEvent> event;
    (void)wait_until([&] {
      engine_.pump(-1);
      event = engine_.take_event();
      return event.has_value();
    });
    return event;
  }

  std::optional<StopEvent> run(Thread& thread, int signal = 0) {
    const std::pair<ThreadId, ResumeAction> order{thread.id(), {.signal = signal}};
    EXPECT_TRUE(engine_.resume(std::span{&order, 1}));
    return await();
  }

  /// Checks that calls left no trace in a thread of "plain" with two arguments.
  void expect_as_it_was(Thread& thread, const Result<arch::x86::UserRegs>& before) {
    const auto after = request::read_user_regs(thread.tid());
    ASSERT_TRUE(before && after);
    EXPECT_EQ(*before, *after);
    EXPECT_EQ(request::read_signal_mask(thread.tid()).value_or(1), 0U);
    const auto end = run(thread);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->kind, StopKind::kProcessExited);
    EXPECT_EQ(end->exit_code, 3);
  }

  Engine engine_{SourceKind::kStep};
};

class LongRemoteCall : public RemoteCall {
 protected:
  void SetUp() override { ASSERT_TRUE(log::to_file(log_)); }

  std::string make_fifo(const std::string& name) {
    std::string path = folder_ / name;
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }

  /// The thread opens the FIFO for reading, which takes until somebody opens it for writing.
  static Result<std::uint64_t> open_fifo(Thread& thread, RemoteCalls& remote,
                                         const std::string& path) {
    BT_TRY(const arch::x86::UserRegs regs, thread.user_regs());
    const TraceeAddr at = regs.sp() - 1024;
    const std::vector<std::uint8_t> text{path.c_str(), path.c_str() + path.size() + 1};
    BT_CHECKED(thread.process().write_data(at, text));
    constexpr auto kAnyFolder = static_cast<std::uint64_t>(AT_FDCWD);
    return remote.call(SYS_openat, {kAnyFolder, at.value(), O_RDONLY});
  }

  [[nodiscard]] bool was_told() const {
    std::ifstream in{log_};
    const std::string text{std::istreambuf_iterator<char>{in}, {}};
    return text.find("still waiting") != std::string::npos;
  }

  test::TemporaryFolder folder_;
  std::string log_ = folder_ / "log";
};

/// Makes calls with one stop each, and one that fails.
void make_stepped_calls(Thread& thread) {
  auto remote = RemoteCalls::begin(thread);
  ASSERT_TRUE(remote);
  EXPECT_EQ(remote->stepped_call(SYS_getpid, {}).value_or(0), static_cast<unsigned>(thread.tid()));
  const auto failed = remote->stepped_call(SYS_close, {~0ULL});
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.error().is(std::errc::bad_file_descriptor));
  EXPECT_EQ(remote->stepped_call(SYS_gettid, {}).value_or(0), static_cast<unsigned>(thread.tid()));
  EXPECT_EQ(remote->call(SYS_getpid, {}).value_or(0), static_cast<unsigned>(thread.tid()));
}

bool ignores_trap(pid_t tid) {
  return (signal_set(tid, "SigIgn") & kTrapBit) != 0;
}

TEST_F(RemoteCall, LeavesTheThreadAsItWasAfterSteps) {
  Thread* thread = launch("plain", {"a", "b"});
  ASSERT_NE(thread, nullptr);
  const auto before = request::read_user_regs(thread->tid());
  make_stepped_calls(*thread);
  expect_as_it_was(*thread, before);
}

TEST_F(RemoteCall, LeavesASignalToBeDelivered) {
  for (const bool ends_with_step : {false, true}) {
    Thread* thread = launch("plain", {});
    ASSERT_NE(thread, nullptr);
    const pid_t tid = thread->tid();
    ASSERT_EQ(::kill(tid, SIGUSR1), 0);
    const auto stop = run(*thread);
    ASSERT_TRUE(stop);
    ASSERT_EQ(stop->signal, SIGUSR1);
    const auto before = request::read_siginfo(tid);
    make_stepped_calls(*thread);
    if (ends_with_step) {
      auto remote = RemoteCalls::begin(*thread);
      ASSERT_TRUE(remote);
      EXPECT_TRUE(remote->stepped_call(SYS_getpid, {}));
    }
    const auto after = request::read_siginfo(tid);
    ASSERT_TRUE(before && after);
    EXPECT_EQ(after->si_signo, SIGUSR1);
    EXPECT_EQ(after->si_pid, before->si_pid);
    const auto end = run(*thread, SIGUSR1);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->kind, StopKind::kProcessSignalled);
    EXPECT_EQ(end->signal, SIGUSR1);
  }
}

TEST_F(RemoteCall, LeavesTheTrapIgnored) {
  Thread* thread = launch("plain", {});
  ASSERT_NE(thread, nullptr);
  const auto regs = thread->user_regs();
  ASSERT_TRUE(regs);
  const TraceeAddr at = regs->sp() - 1024;
  // struct sigaction of the kernel: handler, flags, restorer, mask
  std::array<std::uint8_t, 32> ignore{1};
  ASSERT_TRUE(thread->process().write_data(at, ignore));
  {
    auto remote = RemoteCalls::begin(*thread);
    ASSERT_TRUE(remote);
    ASSERT_TRUE(remote->call(SYS_rt_sigaction, {SIGTRAP, at.value(), 0, 8}));
  }
  ASSERT_TRUE(ignores_trap(thread->tid()));
  make_stepped_calls(*thread);
  EXPECT_TRUE(ignores_trap(thread->tid()));
}

TEST_F(LongRemoteCall, IsWaitedFor) {
  Thread* thread = launch("plain", {"a", "b"});
  ASSERT_NE(thread, nullptr);
  const auto before = request::read_user_regs(thread->tid());
  const std::string path = make_fifo("fifo");
  UniqueFd other_end;
  std::thread waits{[&] {
    EXPECT_TRUE(wait_until([&] { return was_told(); }));
    other_end.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  }};
  {
    auto remote = RemoteCalls::begin(*thread);
    ASSERT_TRUE(remote);
    const auto opened = open_fifo(*thread, *remote, path);
    EXPECT_TRUE(opened) << opened.error().message();
    // If the call was given up, it ends here.
    const UniqueFd reader{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    waits.join();
  }
  expect_as_it_was(*thread, before);
}

TEST_F(LongRemoteCall, EndsWithTheRecorder) {
  Thread* thread = launch("plain", {});
  ASSERT_NE(thread, nullptr);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  ::raise(SIGTERM);
  const auto errors = log::errors();
  {
    auto remote = RemoteCalls::begin(*thread);
    ASSERT_TRUE(remote);
    EXPECT_FALSE(open_fifo(*thread, *remote, make_fifo("fifo")));
    EXPECT_FALSE(remote->call(SYS_getpid, {})) << "its registers are unknown";
  }
  int signal = 0;
  EXPECT_EQ(::sigwait(&set, &signal), 0);
  EXPECT_EQ(log::errors(), errors + 1) << "nobody was told that the process was killed";
  const auto end = run(*thread);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessSignalled);
  EXPECT_EQ(end->signal, SIGKILL);
}

TEST_F(LongRemoteCall, EndsByAnotherThreadsExec) {
  const std::string starts_exec = make_fifo("exec");
  const std::string path = make_fifo("fifo");
  engine_.set_non_stop(true);
  engine_.set_reported({.exec = true});
  Thread* thread = launch("thread_execs", {starts_exec});
  ASSERT_NE(thread, nullptr);
  const pid_t pid = thread->tid();
  const auto signal = run(*thread);
  ASSERT_TRUE(signal);
  ASSERT_EQ(signal->kind, StopKind::kSignal);
  // Once the call has begun, the engine does not resume the other thread from its first stop.
  UniqueFd other_end;
  ASSERT_TRUE(wait_until([&] {
    engine_.pump(-1);
    other_end.reset(::open(starts_exec.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return other_end.get() >= 0;
  }));
  std::thread waits{[&] {
    const std::string opens = std::to_string(SYS_openat) + " ";
    EXPECT_TRUE(
        wait_until([&] { return ProcFs{}.read(pid, "syscall").value_or("").starts_with(opens); }));
    EXPECT_EQ(::write(other_end.get(), "x", 1), 1);
  }};
  {
    auto remote = RemoteCalls::begin(*thread);
    ASSERT_TRUE(remote);
    EXPECT_FALSE(open_fifo(*thread, *remote, path));
    waits.join();
  }
  const auto exec = await();
  ASSERT_TRUE(exec);
  ASSERT_EQ(exec->kind, StopKind::kExec);
  Thread* now = engine_.find(ThreadId{pid, pid});
  ASSERT_NE(now, nullptr);
  const auto end = run(*now);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
  EXPECT_EQ(end->exit_code, 7);
}

}  // namespace
}  // namespace backtrail::tracee
