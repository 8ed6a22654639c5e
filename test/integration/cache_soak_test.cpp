// SPDX-License-Identifier: Apache-2.0
// Soak test: a multithreaded program that checks itself is recorded, stopped, signalled, stepped,
// detached from and attached to in random order.
// Environment: BACKTRAIL_SOAK_SECONDS (duration; the default is short), BACKTRAIL_SOAK_SEED
// (repeats a run's choices; the threads' timing still differs), BACKTRAIL_SOAK_SWITCHES (how often
// recording is turned on and off).

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <random>
#include <string>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cache_run.hpp"
#include "ptrace/os/debug_register_check.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "test/support/effort.hpp"
#include "trace_judge.hpp"

namespace backtrail::tracee {
namespace {

using arch::x86::UserReg;
using std::chrono::microseconds;
using std::chrono::seconds;

constexpr const char* kProgram = "soak";
constexpr seconds kLost{60};
constexpr std::uint64_t kHistoryBytes = 1ULL << 18;

unsigned from_environment(const char* name, unsigned otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(value, nullptr, 10));
}

/// Readable once the time is up.
class Timer {
 public:
  explicit Timer(microseconds time)
      : fd_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)} {
    const auto count = std::max<microseconds::rep>(time.count(), 1);
    itimerspec spec{};
    spec.it_value.tv_sec = count / 1'000'000;
    spec.it_value.tv_nsec = count % 1'000'000 * 1000;
    ::timerfd_settime(fd_.get(), 0, &spec, nullptr);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool over() const {
    pollfd request{fd_.get(), POLLIN, 0};
    return ::poll(&request, 1, 0) == 1;
  }

 private:
  UniqueFd fd_;
};

class CacheSoak : public testing::Test {
 protected:
  CacheSoak() {
    std::cout << "BACKTRAIL_SOAK_SEED=" << seed_ << std::endl;
    if (!debug_registers_trap()) std::cout << "without hardware ones: " << kNoDebugTraps << '\n';
    driver_.engine.set_pass_signals({SIGUSR1, SIGSEGV, SIGCHLD});
  }
  ~CacheSoak() override {
    if (driver_.engine.find(pid_) != nullptr) (void)driver_.engine.kill(pid_);
  }

  [[nodiscard]] Process& process() { return *driver_.engine.find(pid_); }
  [[nodiscard]] ThreadId leader() const { return {pid_, pid_}; }
  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }

  long turns() {
    long value = 0;
    std::array<std::uint8_t, sizeof value> bytes{};
    EXPECT_EQ(process().read_memory(turns_, bytes), bytes.size());
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  /// Returns the next event; nullopt if the timer expires first.
  std::optional<StopEvent> next_event(const Timer& timer) {
    for (;;) {
      driver_.engine.pump(timer.fd());
      if (auto event = driver_.engine.take_event()) return event;
      if (timer.over()) return std::nullopt;
      std::array<pollfd, 2> fds{{{driver_.engine.event_fd(), POLLIN, 0}, {timer.fd(), POLLIN, 0}}};
      ::poll(fds.data(), fds.size(), -1);
    }
  }

  /// Resumes all threads, with the signals that arrived while they were stepped.
  void resume_all() {
    std::vector<std::pair<ThreadId, ResumeAction>> orders;
    for (const auto& thread : process().threads()) {
      const auto signal = signals_.find(thread->id());
      orders.emplace_back(thread->id(),
                          ResumeAction{.signal = signal == signals_.end() ? 0 : signal->second});
    }
    signals_.clear();
    ASSERT_TRUE(driver_.engine.resume(orders));
  }

  /// Checks a stop: the event is an expected one, and no thread shows the recorder's code.
  void check_stop(const StopEvent& event) {
    const bool ours = event.kind == StopKind::kSignal && event.signal == SIGINT;
    const bool theirs =
        event.kind == StopKind::kSignal && driver_.engine.pass_signals().contains(event.signal);
    if (theirs) signals_[event.thread] = event.signal;
    ASSERT_TRUE(ours || theirs || event.kind == StopKind::kSoftwareBreakpoint ||
                event.kind == StopKind::kHardwareBreakpoint ||
                event.kind == StopKind::kWatchpoint || event.kind == StopKind::kStep)
        << "kind " << static_cast<int>(event.kind) << ", signal " << event.signal << ", exit code "
        << event.exit_code;
    for (const auto& thread : process().threads()) {
      if (!thread->stopped()) continue;
      const auto regs = thread->user_regs();
      if (!regs) continue;
      EXPECT_EQ((*regs)[UserReg::kGsBase], 0U);
      std::array<std::uint8_t, 1> byte{};
      EXPECT_EQ(process().read_code(regs->pc(), byte), 1U) << std::hex << regs->pc().value();
    }
  }

  void stop() {
    driver_.engine.interrupt();
    const auto event = next_event(Timer{kLost});
    ASSERT_TRUE(event) << "a lost stop";
    check_stop(*event);
  }

  /// Runs for `time`, then stops; an event ends it earlier.
  void run_for(microseconds time) {
    resume_all();
    const auto event = next_event(Timer{time});
    if (event) {
      check_stop(*event);
    } else {
      stop();
    }
  }
  /// Launches the program and waits until its threads have done some work.
  void launch(const std::vector<std::string>& arguments = {}) {
    pid_ = driver_.launch(kProgram, arguments);
    resume_all();
    const Timer limit{kLost};
    while (turns() < 20 && !limit.over()) ASSERT_FALSE(next_event(Timer{microseconds{500}}));
    stop();
  }

  ThreadId any_thread() {
    const auto& threads = process().threads();
    return threads[below(static_cast<unsigned>(threads.size()))]->id();
  }
  void record(ThreadId id) {
    if (recorded_) return;
    // The thread may have ended meanwhile if threads run.
    if (!driver_.engine.enable_trace(id, config_)) return;
    recorded_ = id;
  }
  void judge_all() {
    for (const auto& thread : process().threads()) {
      if (!thread->trace() || !thread->stopped()) continue;
      const auto pc = thread->next_pc();
      if (!pc) continue;
      thread->trace()->flush();
      judged_.emplace_back(process(), judge_);
      thread->trace()->hub().add(judged_.back(), *pc);
    }
  }
  void do_not_record() {
    if (!recorded_) return;
    (void)driver_.engine.disable_trace(*recorded_);
    recorded_.reset();
  }

  void end() {
    do_not_record();
    const std::array<std::uint8_t, 4> one{1, 0, 0, 0};
    ASSERT_TRUE(process().write_memory(symbol_of(kProgram, "finish"), one));
    resume_all();
    const auto event = next_event(Timer{kLost});
    ASSERT_TRUE(event) << "it does not end";
    EXPECT_EQ(event->kind, StopKind::kProcessExited);
    EXPECT_EQ(event->exit_code, 0);
    EXPECT_EQ(judge_.objections(), "");
  }

  // Disturbances of the program.
  void hit_breakpoint(bool hardware);
  void hit_watchpoint();
  void send_signals();
  void let_go_and_take_again();
  void step_around();
  void switch_while_running();
  void act(unsigned action);

  unsigned seed_ = from_environment("BACKTRAIL_SOAK_SEED", std::random_device{}() % 1'000'000);
  std::mt19937 random_{seed_};
  TraceJudge judge_;
  std::deque<JudgedTrace> judged_;
  TraceeAddr turns_ = symbol_of(kProgram, "turns");
  TraceeAddr hot_ = symbol_of(kProgram, "hot");
  TraceeAddr watched_ = symbol_of(kProgram, "watched");
  EngineDriver driver_{SourceKind::kCache};
  /// Memory is used again whenever recording begins again.
  TraceConfig config_{.size_bytes = kHistoryBytes, .spare = std::make_shared<cache::SpareMemory>()};
  pid_t pid_ = 0;
  std::optional<ThreadId> recorded_;
  std::map<ThreadId, int> signals_;
};

void CacheSoak::hit_breakpoint(bool hardware) {
  BreakpointSpec spec{.kind = hardware ? BreakpointKind::kHardware : BreakpointKind::kSoftware,
                      .address = hot_};
  int looked = 0;
  if (below(2) == 0) spec.condition = [&](ThreadId) { return ++looked > 5; };
  ASSERT_TRUE(driver_.engine.insert(pid_, spec));
  for (unsigned hits = 1 + below(4); hits != 0; --hits) {
    resume_all();
    const auto event = next_event(Timer{kLost});
    ASSERT_TRUE(event) << "a lost breakpoint";
    EXPECT_EQ(event->kind,
              hardware ? StopKind::kHardwareBreakpoint : StopKind::kSoftwareBreakpoint);
    Thread* thread = driver_.engine.find(event->thread);
    ASSERT_TRUE(thread != nullptr);
    EXPECT_EQ(thread->pc().value_or(TraceeAddr{}), hot_);
  }
  spec.condition = {};
  ASSERT_TRUE(driver_.engine.remove(pid_, spec));
}

void CacheSoak::hit_watchpoint() {
  const BreakpointSpec spec{.kind = BreakpointKind::kWrite, .address = watched_, .length = 8};
  ASSERT_TRUE(driver_.engine.insert(pid_, spec));
  resume_all();
  const auto event = next_event(Timer{kLost});
  ASSERT_TRUE(event) << "a lost watchpoint";
  EXPECT_EQ(event->kind, StopKind::kWatchpoint);
  EXPECT_EQ(event->address, watched_);
  ASSERT_TRUE(driver_.engine.remove(pid_, spec));
}

void CacheSoak::send_signals() {
  for (const auto& thread : process().threads()) {
    if (below(2) == 0) ::syscall(SYS_tgkill, pid_, thread->tid(), SIGUSR1);
  }
}

void CacheSoak::let_go_and_take_again() {
  // Detaching does not pass on signals that were reported.
  if (!signals_.empty()) return;
  recorded_.reset();
  ASSERT_TRUE(driver_.engine.detach(pid_));
  const auto attached = driver_.engine.attach(pid_);
  ASSERT_TRUE(attached) << attached.error().message() << '\n'
                        << ProcFs{}.read(pid_, "status").value_or("");
}

void CacheSoak::step_around() {
  const ThreadId id = any_thread();
  for (unsigned steps = 1 + below(20); steps != 0; --steps) {
    if (driver_.engine.find(id) == nullptr) return;
    ResumeAction step{.kind = ResumeKind::kStep};
    if (const auto signal = signals_.extract(id)) step.signal = signal.mapped();
    driver_.resume(id, step);
    // A thread that waits for another in the kernel does not finish its step alone.
    const auto event = next_event(Timer{microseconds{20'000}});
    if (event && event->kind == StopKind::kNoResumed) return;  // the thread has ended
    if (event) {
      check_stop(*event);
    } else {
      stop();
    }
    if (HasFatalFailure()) return;
  }
}

void CacheSoak::switch_while_running() {
  const ThreadId id = any_thread();
  resume_all();
  for (int i = 0; i < 2; ++i) {
    if (const auto event = next_event(Timer{microseconds{below(2000)}})) {
      check_stop(*event);
      return;
    }
    if (recorded_) {
      do_not_record();
    } else {
      record(id);
    }
  }
  stop();
}

void CacheSoak::act(unsigned action) {
  constexpr unsigned kHardware = 3;
  constexpr unsigned kWatched = 4;
  if ((action == kHardware || action == kWatched) && !debug_registers_trap()) return;
  switch (action) {
    case 0:
      recorded_ ? do_not_record() : record(any_thread());
      break;
    case 1:
      record(any_thread());
      judge_all();
      break;
    case 2:
      return hit_breakpoint(false);
    case 3:
      return hit_breakpoint(true);
    case 4:
      return hit_watchpoint();
    case 5:
      return send_signals();
    case 6:
      return let_go_and_take_again();
    case 7:
      return step_around();
    case 8:
      return switch_while_running();
    default:
      run_for(microseconds{below(20'000)});
      break;
  }
}

TEST_F(CacheSoak, EverythingAtOnceChangesNothing) {
  constexpr unsigned kShort = 60;
  constexpr unsigned kActions = 10;
  const seconds length{from_environment("BACKTRAIL_SOAK_SECONDS", 0)};
  const auto begin = std::chrono::steady_clock::now();
  launch();
  unsigned round = 0;
  while (round < kShort || std::chrono::steady_clock::now() - begin < length) {
    const unsigned action = below(kActions);
    SCOPED_TRACE(testing::Message() << "round " << round << ", action " << action);
    const long before = turns();
    act(action);
    if (HasFailure()) return;
    run_for(microseconds{below(3000)});
    if (HasFailure()) return;
    ASSERT_GE(turns(), before);
    ASSERT_EQ(judge_.objections(), "");
    ++round;
  }
  std::cout << round << " rounds, " << turns() << " turns, " << judge_.records()
            << " records judged\n";
  end();
}

TEST_F(CacheSoak, TurningTheRecorderOnAndOffChangesNothing) {
  const unsigned switches = from_environment("BACKTRAIL_SOAK_SWITCHES", test::kSanitized ? 8 : 20);
  // A native breakpoint resets an ignored SIGTRAP; the recorder must not.
  launch({"ignore SIGTRAP"});
  for (unsigned round = 0; round < switches; ++round) {
    SCOPED_TRACE(round);
    const long begin = turns();
    record(leader());
    judge_all();
    run_for(microseconds{below(2000)});
    do_not_record();
    run_for(microseconds{below(200)});
    if (HasFailure()) return;
    ASSERT_GE(turns(), begin);
  }
  EXPECT_NE(signal_set(pid_, "SigIgn") & 1U << (SIGTRAP - 1), 0U);
  const auto maps = ProcFs{}.read(pid_, "maps");
  ASSERT_TRUE(maps);
  EXPECT_EQ(maps->find("memfd:backtrail"), std::string::npos);
  std::cout << switches << " times, " << turns() << " turns, " << judge_.records()
            << " records judged\n";
  end();
}

}  // namespace
}  // namespace backtrail::tracee
