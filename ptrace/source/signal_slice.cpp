// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/signal_slice.hpp"

#include <algorithm>
#include <utility>

#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/run_times.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using namespace std::chrono_literals;

constexpr SignalSlice::Clock::duration kShortest = 200us;
/// A slice ends with a stop and not exactly in time, so it begins only when several signals have
/// used this much time.
constexpr SignalSlice::Clock::duration kWorthwhile = 1ms;
/// Least CPU time a thread gets in a slice if it has work to do.
constexpr std::chrono::nanoseconds kLeastRun = 100us;
/// The time between two signals includes the server's stops, so a thread has had time for itself
/// only after this many times what a signal takes.
constexpr int kStopsCount = 4;
/// A signal is delayed by at most this much.
constexpr SignalSlice::Clock::duration kLongest = 20ms;

/// Returns how long the thread has been on a CPU; nullopt if the kernel does not tell.
std::optional<std::chrono::nanoseconds> run_time(pid_t tid) {
  const auto text = ProcFs{}.read(tid, "schedstat");
  const auto times = text ? parse_run_times(*text) : std::nullopt;
  if (!times) return std::nullopt;
  return times->ran;
}

}  // namespace

bool SignalSlice::may_hold(int signal) {
  if (is_raised_by_insns(signal)) return false;
  switch (signal) {
    case SIGTRAP:
    case SIGCHLD:
    case SIGSYS:
    case SIGSTOP:
    case SIGCONT:
      return false;
    default:
      return true;
  }
}

void SignalSlice::note_delivery(const siginfo_t& signal,
                                const std::function<bool(pid_t)>& keeps_order,
                                Clock::time_point now) {
  const bool sent =
      signal.si_code == SI_USER || signal.si_code == SI_TKILL || signal.si_code == SI_QUEUE;
  if (sent && keeps_order(signal.si_pid)) return;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(signal.si_signo - 1);
  // The time that the previous signal took, from its delivery to its handler's return.
  const auto took = std::max(returned_at_ - delivered_at_, kShortest);
  const bool fast = !delivered_ && now - returned_at_ < kStopsCount * took;
  fast_ = fast ? fast_ | bit : fast_ & ~bit;
  if (!std::exchange(delivered_, true)) delivered_at_ = now;
}

std::uint64_t SignalSlice::note_return(std::uint64_t mask, Clock::time_point now) {
  held_ &= ~mask;
  if (!std::exchange(delivered_, false)) return mask | held_;
  returned_at_ = now;
  const std::uint64_t more = fast_ & ~mask;
  owed_ = more == 0 ? Clock::duration{} : owed_ + std::max(now - delivered_at_, kShortest);
  if (owed_ >= kWorthwhile) {
    held_ |= more;
    over_at_ = now + std::clamp(owed_, kShortest, kLongest);
    owed_ = {};
  }
  return mask | held_;
}

void SignalSlice::measure(pid_t tid) {
  tid_ = tid;
  ran_before_ = run_time(tid);
}

bool SignalSlice::has_run() const {
  const auto ran = run_time(tid_);
  return !ran_before_ || !ran || *ran - *ran_before_ >= kLeastRun;
}

SignalSlice::Clock::time_point SignalSlice::over_at() const {
  const auto now = Clock::now();
  if (now < over_at_ || has_run()) return over_at_;
  // A sleeping thread has no work to do.
  const auto stat = ProcFs{}.task_stat(tid_, tid_);
  return stat && stat->state == 'R' ? now + kShortest : over_at_;
}

bool SignalSlice::over() const {
  return active() && Clock::now() >= over_at_ && has_run();
}

void SignalSlice::end(Thread& thread) {
  const std::uint64_t held = std::exchange(held_, 0);
  if (held == 0) return;
  returned_at_ = Clock::now();
  const auto mask = request::read_signal_mask(thread.tid());
  if (mask) (void)request::write_signal_mask(thread.tid(), *mask & ~held);
}

}  // namespace backtrail::tracee
