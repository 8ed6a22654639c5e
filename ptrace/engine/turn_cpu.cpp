// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/turn_cpu.hpp"

#include <sched.h>

#include "ptrace/os/resume_here.hpp"

namespace backtrail::tracee {
namespace {

/// Stops between two decisions.
constexpr std::size_t kBatch = 16;
/// Threads take turns if at most this part of the stops is another thread's than the one before.
constexpr std::size_t kMostChanges = kBatch * 5 / 8;
/// Longest time from one stop to the next, on average, for which turns pay: where the other CPU is
/// idle, and where it is not.
constexpr std::chrono::microseconds kBesideIdle{300};
constexpr std::chrono::microseconds kBesideBusy{2'000};
/// Stops after which the affinity is restored for a batch.
constexpr std::size_t kChooseAfter = 512;
/// Time without a stop after which the affinity is restored.
constexpr std::chrono::milliseconds kQuiet{20};
/// Time after a stop after which waiting without sleeping does not pay.
constexpr std::chrono::microseconds kTurn{100};

}  // namespace

void TurnCpu::note_stop(const Stop& stop, Clock::time_point now,
                        const std::function<bool()>& others_run) {
  if (now - last_ > kQuiet) begin(now);
  last_ = now;
  if (stop.tid != last_stop_.tid) {
    ++changes_;
  } else if (stop.translated > last_stop_.translated) {
    made_ += stop.translated - last_stop_.translated;
  }
  last_stop_ = stop;
  ++stops_;
  ++turns_;
  if (stops_ < kBatch) return;
  const bool spare = narrowed_ ? had_spare_cpu_ : stop.has_spare_cpu;
  // Now and then the scheduler may choose another CPU, and the caller looks for a spare one.
  const bool wanted = pays(spare, now) && !(narrowed_ && turns_ >= kChooseAfter) && !others_run();
  begin(now);
  if (!wanted) return go_back();
  if (narrowed_) return;
  const int cpu = ::sched_getcpu();
  narrowed_ = own_.pin(cpu) && own_.active();
  if (!narrowed_) return;
  ResumeHere::use(cpu);
  had_spare_cpu_ = spare;
  turns_ = 0;
}

bool TurnCpu::pays(bool has_spare_cpu, Clock::time_point now) const {
  const auto between = has_spare_cpu ? kBesideIdle : kBesideBusy;
  // A thread that lacks translations asks for them without a stop, if there is a CPU for that.
  const bool learns = made_ > stops_ / 2;
  return changes_ <= kMostChanges && now - since_ <= between * stops_ && !(learns && has_spare_cpu);
}

void TurnCpu::begin(Clock::time_point now) {
  stops_ = 0;
  changes_ = 0;
  made_ = 0;
  since_ = now;
}

bool TurnCpu::in_turns() const {
  return narrowed_ && Clock::now() - last_ < kTurn;
}

void TurnCpu::look() {
  if (narrowed_ && Clock::now() - last_ > kQuiet) go_back();
}

void TurnCpu::go_back() {
  if (!narrowed_) return;
  ResumeHere::use(std::nullopt);
  own_.release();
  narrowed_ = false;
}

}  // namespace backtrail::tracee
