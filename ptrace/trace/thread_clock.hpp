#pragma once
/// @file
/// When a recorded thread was on a CPU, and about where in its trace.
///
/// The kernel's context-switch records say when; they know nothing of the trace. So somebody looks
/// every few milliseconds: where a thread waits in a system call its place can be read from the log
/// that it writes, while it runs the place lies within what a log holds.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "arch/base/result.hpp"
#include "decoder/corefile/thread_times.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/perf/sched_marks.hpp"
#include "ptrace/trace/mark_pace.hpp"

namespace backtrail::tracee {

class BranchSource;
class Thread;

class ThreadClock final : public decoder::TraceConsumer {
 public:
  /// What the thread did before it has a clock.
  struct Before {
    std::uint64_t since_ns = 0;  ///< Of CLOCK_MONOTONIC; there was no thread before it.
    std::size_t stops = 0;       ///< For its tracer.
  };

  /// @param records  How many records the listeners have got until now. We hear of marks after
  ///                 those that count them.
  /// Errors: of SchedMarks.
  static Result<std::unique_ptr<ThreadClock>> open(PerfKernel& kernel, pid_t tid,
                                                   const Before& before,
                                                   std::function<std::uint64_t()> records);

  /// Of CLOCK_MONOTONIC.
  static std::uint64_t now();
  /// The thread has stopped for its tracer: a departure that says nothing of the program.
  void note_stop();
  /// Looks where the thread is. It may run.
  void look(Thread& thread, BranchSource& source);
  /// What is known at a stop, when every record until then has been handed on.
  [[nodiscard]] decoder::ThreadTimes read();

  void consume(std::span<const decoder::Record> records) override { (void)records; }
  void consume_mark(const decoder::TraceMark& mark) override;

 private:
  struct Pin {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    bool exact = false;        ///< Both places are the same.
    std::uint64_t passed = 0;  ///< Records behind the place that the stream tells of.
    std::optional<std::uint64_t> earliest = std::nullopt;
    std::optional<std::uint64_t> latest = std::nullopt;
  };

  /// A place in the code cache where a thread waits.
  struct Waits {
    TraceeAddr pc;
    std::uint64_t logged = 0;
    bool operator==(const Waits&) const = default;
  };

  ThreadClock(PerfKernel& kernel, pid_t tid, std::uint64_t since_ns,
              std::function<std::uint64_t()> records);
  Result<void> begin(const Before& before);
  void note_opened();
  /// Returns how many are new.
  std::size_t take_marks();
  /// So many marks since the last look; those of our stops cost nothing more than these do.
  bool too_many(std::size_t marks);
  /// Marks are not looked at for a while.
  void rest();
  void look_at_resting(Thread& thread);
  [[nodiscard]] std::optional<Waits> waiting_place(Thread& thread);
  bool has_stayed(Thread& thread);
  bool has_rested();
  [[nodiscard]] std::uint64_t lost_marks() const;
  void take_mark(const decoder::TraceMark& mark);
  bool forget_stops_before(std::uint64_t time_ns);
  void add_off(const decoder::OffCpu& off);
  void look_at_running(BranchSource& source);
  /// It has been off its CPU since then. False: where it is cannot be told.
  bool look_at_waiting(Thread& thread, std::uint64_t since, BranchSource& source);
  /// Returns its number.
  std::uint64_t add_pin(const Pin& pin);

  PerfKernel& kernel_;
  pid_t tid_;
  std::unique_ptr<SchedMarks> marks_;  ///< Null while it rests.
  MarkPace pace_;
  std::uint64_t lost_ = 0;               ///< Marks, without those of marks_.
  std::uint64_t switches_ = 0;           ///< Of the thread, when rest began.
  std::uint64_t seen_switches_ = 0;      ///< At the last look that counted them.
  std::optional<Waits> waited_;          ///< At the last look, while it rests.
  std::optional<std::uint64_t> logged_;  ///< Likewise.
  std::uint32_t looks_at_resting_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::size_t stops_since_look_ = 0;
  std::function<std::uint64_t()> records_;
  std::deque<std::uint64_t> stops_;         ///< Not seen among the marks yet.
  std::optional<decoder::TraceMark> left_;  ///< It is off its CPU since then.
  std::optional<std::uint64_t> last_stop_;
  std::uint64_t opened_ns_ = 0;  ///< What was before marks_ was there nobody has seen.
  bool has_marks_ = false;       ///< Some have come since.
  bool left_is_pinned_ = false;  ///< The newest pin tells where it is meanwhile.
  std::uint64_t first_pin_ = 0;  ///< Number of the oldest one that is kept.
  std::deque<Pin> pins_;
  std::deque<decoder::OffCpu> off_;
  decoder::ThreadTimes sums_;
};

}  // namespace backtrail::tracee
