// SPDX-License-Identifier: Apache-2.0
#include "ptrace/remote/remote_calls.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/os/child_signal.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/trap_guard.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::kSyscallInsn;
using arch::cpu::UserReg;

using Clock = std::chrono::steady_clock;

/// Most stops come within kSoon, and all but those of threads that are starved, frozen or held up
/// in the kernel within kUsual.
constexpr std::chrono::microseconds kSoon{100};
constexpr std::chrono::seconds kUsual{5};
constexpr std::chrono::milliseconds kLongNap{5};
constexpr std::size_t kSearchBytes = 256UL * 1024;
/// si_code of a stop at a system call's end, with PTRACE_O_TRACESYSGOOD (ptrace(2)).
constexpr int kSyscallStop = SIGTRAP | 0x80;

std::optional<TraceeAddr> find_in(Process& process, const MapEntry& map) {
  std::vector<std::uint8_t> bytes(std::min<std::size_t>(map.end - map.start, kSearchBytes));
  bytes.resize(process.read_code(TraceeAddr{map.start}, bytes));
  const auto found =
      std::search(bytes.begin(), bytes.end(), kSyscallInsn.begin(), kSyscallInsn.end());
  if (found == bytes.end()) return std::nullopt;
  return TraceeAddr{map.start} + static_cast<std::uint64_t>(found - bytes.begin());
}

/// Returns true for a stop whose siginfo, and from which the delivery of a signal, would be lost
/// when the thread runs on. Traps count too: from the end of a call a signal could only be sent,
/// and would be reported once more.
bool is_signal_stop(Thread& thread) {
  if (!thread.at_signal_delivery()) return false;
  return thread.status().signal != SIGTRAP || thread.trap_cause() != TrapCause::kHandlerEntry;
}

/// Ends the call in whose middle fork, clone or exec was reported, because its result would be
/// taken for that of the next call.
Result<void> end_call(Thread& thread) {
  const WaitStatus& status = thread.status();
  if (status.kind != WaitKind::kEvent || status.event == PTRACE_EVENT_STOP) return {};
  const bool ends = status.event == PTRACE_EVENT_FORK || status.event == PTRACE_EVENT_CLONE ||
                    status.event == PTRACE_EVENT_EXEC || status.event == PTRACE_EVENT_VFORK_DONE;
  if (!ends) return fail(TraceErrc::kBusy, "remote call", static_cast<unsigned>(status.event));
  BT_TRY(const siginfo_t info, request::read_siginfo(thread.tid()));
  if (info.si_code == kSyscallStop) return {};  // earlier calls have ended it
  BT_CHECKED(request::cont_syscall(thread.tid()));
  BT_TRY(const WaitStatus end, next_stop(thread.tid()));
  if (end.kind != WaitKind::kSyscall) return fail(TraceErrc::kBusy, "end of a system call");
  BT_TRY(const arch::cpu::UserRegs behind, request::read_user_regs(thread.tid()));
  return thread.set_user_regs(behind);
}

bool has_syscall_at(Process& process, TraceeAddr at) {
  std::array<std::uint8_t, 2> bytes{};
  return process.read_code(at, bytes) == bytes.size() && bytes[0] == 0x0f && bytes[1] == 0x05;
}

/// Returns the address of the vdso. Its contents are the same in every program under this kernel.
std::optional<TraceeAddr> vdso_of(Process& process) {
  if (process.placement.vdso) return process.placement.vdso;
  constexpr std::uint64_t kVdso = 33;  // AT_SYSINFO_EHDR
  const auto auxv = ProcFs{}.auxv(process.pid());
  if (!auxv) return std::nullopt;
  std::array<std::uint64_t, 2> entry{};
  for (std::size_t at = 0; at + sizeof entry <= auxv->size(); at += sizeof entry) {
    std::memcpy(entry.data(), auxv->data() + at, sizeof entry);
    if (entry[0] == kVdso) return TraceeAddr{entry[1]};
  }
  return std::nullopt;
}

/// Returns true if this process blocks a signal that was sent to end it.
bool is_asked_to_end() {
  sigset_t waiting;
  if (::sigpending(&waiting) != 0) return false;
  constexpr std::array kEnd{SIGTERM, SIGQUIT, SIGHUP};
  return std::any_of(kEnd.begin(), kEnd.end(),
                     [&](int signal) { return ::sigismember(&waiting, signal) == 1; });
}

/// Waits between two looks at a thread that stops soon. The wait has no limit: a thread that has no
/// time to run now gets some later, and must not run on with the registers of a remote call.
class Patience {
 public:
  explicit Patience(pid_t tid) : tid_{tid} {}
  ~Patience() {
    if (took_signal_) ChildSignal::again();
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  /// Errors: kTraceeGone (the thread has ended), kBusy (this process is to end first).
  Result<void> nap() {
    const auto waited = Clock::now() - begin_;
    if (waited < kSoon) {
      std::this_thread::yield();
    } else if (waited < kUsual) {
      // On a busy machine a yielding thread would come last every time.
      sleep_until_news();
    } else {
      BT_CHECKED(look());
      std::this_thread::sleep_for(kLongNap);
    }
    return {};
  }

 private:
  Result<void> look() {
    const auto stat = ProcFs{}.task_stat(tid_, tid_);
    // The kernel shows the end of a leader only when all other threads have ended.
    if (!stat || stat->zombie()) return fail(TraceErrc::kTraceeGone, "remote call", detail());
    if (!std::exchange(told_, true)) {
      log::ptrace().warn(
          "tid={}: the thread (state {}) has not stopped for {} s; still waiting. SIGTERM ends the "
          "wait, and the process",
          tid_, stat->state, kUsual.count());
    }
    if (is_asked_to_end()) return fail(TraceErrc::kBusy, "remote call", detail());
    return {};
  }
  /// Takes the signal of a stop, which others may wait for.
  void sleep_until_news() {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    constexpr timespec kNap{0, 50'000};
    if (::sigtimedwait(&child, nullptr, &kNap) == SIGCHLD) took_signal_ = true;
  }
  [[nodiscard]] std::uint64_t detail() const { return static_cast<std::uint64_t>(tid_); }

  pid_t tid_;
  Clock::time_point begin_ = Clock::now();
  bool told_ = false;
  bool took_signal_ = false;
};

}  // namespace

Result<WaitStatus> next_stop(pid_t tid) {
  Patience patience{tid};
  for (;;) {
    siginfo_t info{};
    const int done = ::waitid(P_PID, static_cast<id_t>(tid), &info,
                              WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
    if (done != 0) return fail(TraceErrc::kTraceeGone, "waitid", static_cast<std::uint64_t>(tid));
    if (info.si_pid == tid) {
      const bool stops = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
      const bool ends = info.si_status == event_code(PTRACE_EVENT_EXIT) ||
                        info.si_status == event_code(PTRACE_EVENT_EXEC);
      if (!stops || ends) {
        return fail(TraceErrc::kTraceeGone, "remote call", static_cast<std::uint64_t>(tid));
      }
      int raw = 0;
      if (::waitpid(tid, &raw, __WALL | WNOHANG) == tid) return WaitStatus::decode(raw);
    }
    BT_CHECKED(patience.nap());
  }
}

std::uint64_t signal_set(pid_t tid, std::string_view name) {
  const auto status = ProcFs{}.read(tid, "status");
  if (!status) return 0;
  const std::string field = std::string{"\n"}.append(name).append(":\t");
  const std::size_t at = status->find(field);
  if (at == std::string::npos) return 0;
  std::uint64_t set = 0;
  const char* begin = status->data() + at + field.size();
  std::from_chars(begin, status->data() + status->size(), set, 16);
  return set;
}

Result<TraceeAddr> find_syscall_insn(Process& process) {
  static std::uint64_t last_in_vdso = 0;  // used by the tracing thread only
  const auto vdso = vdso_of(process);
  if (vdso && last_in_vdso != 0 && has_syscall_at(process, *vdso + last_in_vdso)) {
    return *vdso + last_in_vdso;
  }
  BT_TRY(const std::vector<MapEntry> maps, ProcFs{}.maps(process.pid()));
  for (const bool in_vdso : {true, false}) {
    for (const MapEntry& map : maps) {
      if (!map.execute || !map.read || (map.path == "[vdso]") != in_vdso) continue;
      const auto found = find_in(process, map);
      if (!found) continue;
      if (vdso && *vdso == TraceeAddr{map.start}) last_in_vdso = *found - *vdso;
      return *found;
    }
  }
  return fail(TraceErrc::kUnsupported, "find a SYSCALL instruction");
}

RemoteCalls::RemoteCalls(Thread& thread, TraceeAddr syscall_at, const arch::cpu::UserRegs& saved,
                         std::uint64_t mask)
    : thread_{&thread}, syscall_at_{syscall_at}, saved_{saved}, mask_{mask} {}

RemoteCalls::RemoteCalls(RemoteCalls&& other) noexcept
    : thread_{std::exchange(other.thread_, nullptr)},
      syscall_at_{other.syscall_at_},
      saved_{other.saved_},
      mask_{other.mask_},
      signal_{other.signal_},
      lost_{other.lost_},
      interrupted_{other.interrupted_},
      stop_again_{other.stop_again_},
      trap_again_{other.trap_again_},
      at_trap_{other.at_trap_} {}

Result<RemoteCalls> RemoteCalls::begin(Thread& thread) {
  BT_TRY(const TraceeAddr at, find_syscall_insn(thread.process()));
  BT_CHECKED(end_call(thread));
  BT_TRY(const arch::cpu::UserRegs saved, thread.user_regs());
  BT_TRY(const std::uint64_t mask, request::read_signal_mask(thread.tid()));
  BT_CHECKED(request::write_signal_mask(thread.tid(), kEverySignal));
  RemoteCalls calls{thread, at, saved, mask};
  if (is_signal_stop(thread)) {
    const auto info = request::read_siginfo(thread.tid());
    if (info) calls.signal_ = *info;
  }
  return calls;
}

RemoteCalls::~RemoteCalls() {
  if (thread_ == nullptr) return;
  // From the delivery of a trap any signal can be delivered.
  if (signal_ && lost_ == Lost::kNo && !at_trap_) {
    if (const auto stopped = stop_for_signal_again(); !stopped) {
      log::ptrace().debug("tid={}: {}", thread_->tid(), stopped.error().message());
    }
  }
  if (!may_restore()) return;
  const auto restored = request::write_user_regs(thread_->tid(), saved_);
  if (restored && signal_) (void)request::write_siginfo(thread_->tid(), *signal_);
  (void)request::write_signal_mask(thread_->tid(), mask_);
  if (!restored) {
    const bool gone = restored.error().is(TraceErrc::kTraceeGone);
    log::ptrace().log(gone ? log::Level::kDebug : log::Level::kError,
                      "tid={}: registers after a remote call: {}", thread_->tid(),
                      restored.error().message());
  }
  if (restored && !signal_ && thread_->syscall_will_restart()) {
    // The kernel repeats an interrupted call when the thread leaves a stop like the original one,
    // but not when it leaves the end of a remote call.
    (void)request::interrupt(thread_->tid());
    (void)request::cont(thread_->tid());
    if (!wait() && !may_restore()) return;
  }
  send_again();
  // The stop that the engine waits for was consumed here, so cause it again.
  if (interrupted_) (void)request::interrupt(thread_->tid());
}

Result<WaitStatus> RemoteCalls::wait() {
  auto status = next_stop(thread_->tid());
  if (!status) lost_ = status.error().is(TraceErrc::kBusy) ? Lost::kRuns : Lost::kEnds;
  return status;
}

Result<void> RemoteCalls::check_usable() const {
  if (lost_ == Lost::kNo) return {};
  return fail(TraceErrc::kTraceeGone, "remote call", static_cast<std::uint64_t>(thread_->tid()));
}

/// Returns false if the thread's state is not to be restored.
bool RemoteCalls::may_restore() {
  switch (lost_) {
    case Lost::kNo:
      return true;
    case Lost::kRuns:
      log::ptrace().error(
          "tid={}: killing process {}: it has not finished a system call that was made in its "
          "place, so its registers cannot be restored",
          thread_->tid(), thread_->id().pid);
      (void)::kill(thread_->id().pid, SIGKILL);
      return false;
    case Lost::kEnds:
      break;
  }
  return !thread_->is_replaced();
}

/// Sends again the signals that arrived meanwhile and could not be kept pending.
void RemoteCalls::send_again() {
  const pid_t tid = thread_->tid();
  if (trap_again_) thread_->send_again(SIGTRAP);
  if (!stop_again_) return;
  // A SIGCONT that arrived later has cancelled the stop.
  const std::uint64_t waiting = signal_set(tid, "SigPnd") | signal_set(tid, "ShdPnd");
  if ((waiting & kContinueBit) == 0) {
    thread_->send_again(SIGSTOP);
  }
}

/// Notes a stop other than the end of a remote call. Returns true if the thread can be resumed.
bool RemoteCalls::note_other_stop(const WaitStatus& status) {
  if (status.is_event(PTRACE_EVENT_STOP)) {
    interrupted_ = true;
    return true;
  }
  if (status.kind != WaitKind::kStopped) return false;
  stop_again_ |= status.signal == SIGSTOP;
  trap_again_ |= status.signal == SIGTRAP;
  return status.signal == SIGSTOP || status.signal == SIGTRAP;
}

Result<void> RemoteCalls::unblock_trap() {
  return request::write_signal_mask(thread_->tid(), kEverySignal & ~kTrapBit);
}

/// Sends SIGTRAP to get a stop for a signal; the tracer then chooses which signal is delivered from
/// it. SIGSTOP, which cannot be blocked either, would make the kernel discard a pending SIGCONT. An
/// interrupted system call continues from this stop as it would have from the original one.
Result<void> RemoteCalls::stop_for_signal_again() {
  const pid_t tid = thread_->tid();
  BT_CHECKED(request::write_user_regs(tid, saved_));
  BT_TRY(const std::vector<siginfo_t> waiting, request::pending_signals(tid));
  trap_again_ |= std::any_of(waiting.begin(), waiting.end(),
                             [](const siginfo_t& info) { return info.si_signo == SIGTRAP; });
  BT_CHECKED(unblock_trap());
  thread_->send_again(SIGTRAP);
  for (;;) {
    BT_CHECKED(request::cont(tid));
    BT_TRY(const WaitStatus status, wait());
    if (status.kind == WaitKind::kStopped && status.signal == SIGTRAP) return {};
    if (!note_other_stop(status)) return fail(TraceErrc::kBusy, "stop for a signal");
  }
}

Result<void> RemoteCalls::run_to_syscall_stop() {
  for (;;) {
    BT_CHECKED(request::cont_syscall(thread_->tid()));
    BT_TRY(const WaitStatus status, wait());
    at_trap_ = false;
    if (status.kind == WaitKind::kSyscall) return {};
    // Only SIGSTOP and SIGKILL cannot be masked.
    if (!note_other_stop(status) && status.kind == WaitKind::kStopped) {
      thread_->send_again(status.signal);
      return fail(TraceErrc::kBusy, "remote call", static_cast<std::uint64_t>(status.signal));
    }
  }
}

bool RemoteCalls::may_step() const {
  if (!thread_->process().filters.empty()) return false;
  TrapGuard::learn_ignored(*thread_);
  return !thread_->process().trap_action.ignored.value_or(true);
}

Result<void> RemoteCalls::note_trap() {
  BT_TRY(const siginfo_t info, request::read_siginfo(thread_->tid()));
  at_trap_ = true;
  trap_again_ |= info.si_code <= 0;  // sent by a process; the trap was merged into it
  return {};
}

Result<void> RemoteCalls::step_over_syscall() {
  const pid_t tid = thread_->tid();
  const TraceeAddr end = syscall_at_ + kSyscallInsn.size();
  BT_CHECKED(unblock_trap());
  for (;;) {
    BT_CHECKED(request::step(tid));
    BT_TRY(const WaitStatus status, wait());
    at_trap_ = false;
    if (status.kind == WaitKind::kStopped && status.signal == SIGTRAP) {
      BT_TRY(const arch::cpu::UserRegs regs, request::read_user_regs(tid));
      if (regs.pc() == end) break;
    }
    if (!note_other_stop(status)) {
      return fail(TraceErrc::kBusy, "remote call", static_cast<std::uint64_t>(status.signal));
    }
  }
  BT_CHECKED(note_trap());
  return request::write_signal_mask(tid, kEverySignal);
}

Result<void> RemoteCalls::let_pass(const seccomp_data& call) const {
  if (thread_->process().filters.allow(call)) return {};
  return fail(TraceErrc::kUnsupported, "behind the program's seccomp filter",
              static_cast<std::uint64_t>(call.nr));
}

Result<void> RemoteCalls::make_each(const CallBatch::Code& code) {
  // Make all calls or none.
  for (const auto& each : code.calls) BT_CHECKED(let_pass(each.call));
  for (const auto& [wanted, expected] : code.calls) {
    BT_TRY(const std::uint64_t value, make(wanted));
    if (value != expected) return fail(TraceErrc::kUnsupported, "remote calls");
  }
  if (!code.ids) return {};
  const auto store = [&](TraceeAddr at, std::uint64_t id) {
    const auto bytes = std::bit_cast<std::array<std::uint8_t, 4>>(static_cast<std::uint32_t>(id));
    return thread_->process().write_data(at, bytes);
  };
  BT_TRY(const std::uint64_t process, call(SYS_getpid, {}));
  BT_TRY(const std::uint64_t thread, call(SYS_gettid, {}));
  BT_CHECKED(store(code.ids->process, process));
  return store(code.ids->thread, thread);
}

Result<void> RemoteCalls::run(const CallBatch::Code& code) {
  if (!thread_->process().filters.empty()) return make_each(code);
  BT_CHECKED(check_usable());
  const pid_t tid = thread_->tid();
  arch::cpu::UserRegs regs = saved_;
  regs.set_pc(code.begin);
  leave_syscall(regs);
  BT_CHECKED(request::write_user_regs(tid, regs));
  // The kernel resets the action of an ignored trap.
  TrapGuard::learn_ignored(*thread_);
  TrapGuard::note_forced(*thread_, false);
  BT_CHECKED(unblock_trap());
  for (;;) {
    BT_CHECKED(request::cont(tid));
    BT_TRY(const WaitStatus status, wait());
    at_trap_ = false;
    if (status.kind == WaitKind::kStopped && status.signal == SIGTRAP) {
      BT_TRY(regs, request::read_user_regs(tid));
      if (regs.pc() == code.end) break;
    }
    if (!note_other_stop(status)) {
      return fail(TraceErrc::kBusy, "remote calls", static_cast<std::uint64_t>(status.signal));
    }
  }
  BT_CHECKED(note_trap());
  BT_CHECKED(request::write_signal_mask(tid, kEverySignal));
  if (regs[UserReg::kR12] != 0) return fail(TraceErrc::kUnsupported, "remote calls");
  return {};
}

Result<std::uint64_t> RemoteCalls::call(std::uint64_t number,
                                        std::initializer_list<std::uint64_t> arguments) {
  return make(system_call(static_cast<std::uint32_t>(number), arguments));
}

Result<std::uint64_t> RemoteCalls::stepped_call(std::uint64_t number,
                                                std::initializer_list<std::uint64_t> arguments) {
  return make(system_call(static_cast<std::uint32_t>(number), arguments),
              may_step() ? Stops::kEnd : Stops::kBeginAndEnd);
}

Result<std::uint64_t> RemoteCalls::make(const seccomp_data& call, Stops stops) {
  BT_CHECKED(check_usable());
  BT_CHECKED(let_pass(call));
  const auto number = static_cast<std::uint64_t>(call.nr);
  arch::cpu::UserRegs regs = saved_;
  regs.set_pc(syscall_at_);
  set_syscall_number(regs, number);
  leave_syscall(regs);
  for (std::size_t i = 0; i < arch::cpu::kSyscallArguments.size(); ++i) {
    set_syscall_argument(regs, i, call.args[i]);
  }
  BT_CHECKED(request::write_user_regs(thread_->tid(), regs));
  if (stops == Stops::kEnd) {
    BT_CHECKED(step_over_syscall());
  } else {
    BT_CHECKED(run_to_syscall_stop());
    BT_CHECKED(run_to_syscall_stop());
  }
  BT_TRY(const std::uint64_t value,
         request::peek_user_reg(thread_->tid(), arch::cpu::kSyscallResult));
  if (value >= arch::cpu::kFirstSyscallError) {
    return fail(errno_error(static_cast<int>(0 - value), "remote call", number));
  }
  return value;
}

}  // namespace backtrail::tracee
