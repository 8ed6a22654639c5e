// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/stop_cpu.hpp"

#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
namespace {

/// Stops between two looks at their rate: of a thread that can be pinned, and of one that is
/// followed, for which /proc/TID/stat costs about as much as a stop.
constexpr std::size_t kBatch = 16;
constexpr std::size_t kBatchToFollow = 64;
/// Time without a stop after which the affinities are restored.
constexpr std::chrono::milliseconds kQuiet{20};
/// Time after a stop or the begin of a step after which waiting without sleeping does not pay.
constexpr std::chrono::microseconds kTurn{100};
/// Stops after which the scheduler may choose another CPU.
constexpr std::size_t kChooseAfter = 256;
/// Stops in which it may.
constexpr std::size_t kToChoose = 2;

/// Returns the first CPU in both sets, preferably `wanted`; -1 if there is none.
int common_cpu(const cpu_set_t& one, const cpu_set_t& other, int wanted) {
  cpu_set_t both;
  CPU_AND(&both, &one, &other);
  if (wanted >= 0 && CPU_ISSET(static_cast<std::size_t>(wanted), &both)) return wanted;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &both)) return cpu;
  }
  return -1;
}

}  // namespace

void StopCpu::note_stop(const std::shared_ptr<CpuPin>& pin, bool may_pin, Clock::time_point now,
                        std::chrono::microseconds between) {
  if (pin != thread_ || now - last_ > kQuiet) {
    go_back();
    begin(pin, now);
  }
  last_ = turn_ = now;
  if (choosing_) {
    if (++stops_ < kToChoose) return;
    choosing_ = false;
    follow(may_pin);
    return begin(pin, now);
  }
  if (++stops_ < (may_pin ? kBatch : kBatchToFollow)) return;
  const bool fast = now - since_ <= between * stops_;
  since_choice_ += stops_;
  if (!fast) {
    go_back();
  } else if (narrowed_ && may_pin && since_choice_ >= kChooseAfter) {
    // Soon both are pinned wherever the tracing thread runs then.
    own_.release();
    narrowed_ = false;
    choosing_ = true;
  } else {
    follow(may_pin);
  }
  begin(pin, now);
}

void StopCpu::begin(const std::shared_ptr<CpuPin>& pin, Clock::time_point now) {
  thread_ = pin;
  stops_ = 0;
  since_ = now;
}

void StopCpu::look() {
  if (narrows() && Clock::now() - last_ > kQuiet) go_back();
}

bool StopCpu::in_turns() const {
  return narrowed_ && Clock::now() - turn_ < kTurn;
}

void StopCpu::follow(bool may_pin) {
  if (narrowed_ && may_pin && thread_->active()) return;
  narrowed_ = may_pin ? pin_both() : follow_natively();
  if (narrowed_) {
    slice_.lengthen();
  } else {
    own_.release();
  }
  since_choice_ = 0;
}

bool StopCpu::pin_both() {
  const int cpu = common_cpu(own_.allowed(), thread_->allowed(), ::sched_getcpu());
  return own_.pin(cpu) && thread_->pin(cpu);
}

bool StopCpu::follow_natively() {
  const auto stat = ProcFs{}.task_stat(thread_->tid(), thread_->tid());
  // The tracing thread must not leave the CPUs that it is confined to.
  return stat && own_.pin(stat->processor) && own_.active();
}

void StopCpu::release_thread() {
  if (thread_) thread_->release();
  thread_.reset();
  since_choice_ = 0;
}

void StopCpu::go_back() {
  release_thread();
  own_.release();
  slice_.restore();
  narrowed_ = false;
  choosing_ = false;
}

}  // namespace backtrail::tracee
