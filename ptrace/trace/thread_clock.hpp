// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Records when a thread was on a CPU, and roughly where in its trace.
///
/// The kernel's context-switch records give the times but do not refer to the trace. So look() is
/// called every few milliseconds. If the thread waits in a system call, its place is read from its
/// log pointer; if it runs, its place lies within what a log can hold.

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
  /// The thread's life before it has a clock.
  struct Before {
    std::uint64_t since_ns = 0;  ///< Start of the thread, by CLOCK_MONOTONIC.
    std::size_t stops = 0;       ///< Stops for the tracer.
  };

  /// Opens the clock of a thread.
  /// @param records Returns how many records the consumers have got so far. The clock must hear of
  /// marks after the consumers that count records.
  /// Errors: those of SchedMarks::open().
  static Result<std::unique_ptr<ThreadClock>> open(PerfKernel& kernel, pid_t tid,
                                                   const Before& before,
                                                   std::function<std::uint64_t()> records);

  /// Returns the time of CLOCK_MONOTONIC in nanoseconds.
  static std::uint64_t now();
  /// Notes a stop for the tracer: a departure that tells nothing of the program.
  void note_stop();
  /// Looks at where the thread is. The thread may run.
  void look(Thread& thread, BranchSource& source);
  /// Returns what is known. Call at a stop, after every record so far has been handed on.
  [[nodiscard]] decoder::ThreadTimes read();

  void consume(std::span<const decoder::Record> records) override { (void)records; }
  void consume_mark(const decoder::TraceMark& mark) override;

 private:
  struct Pin {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
    bool exact = false;        ///< Both places are the same.
    std::uint64_t passed = 0;  ///< Records between the pin and the thread's place.
    std::optional<std::uint64_t> earliest = std::nullopt;
    std::optional<std::uint64_t> latest = std::nullopt;
  };

  /// A place in translated code at which a thread waits.
  struct Waits {
    TraceeAddr pc;
    std::uint64_t logged = 0;
    bool operator==(const Waits&) const = default;
  };

  ThreadClock(PerfKernel& kernel, pid_t tid, std::uint64_t since_ns,
              std::function<std::uint64_t()> records);
  Result<void> begin(const Before& before);
  void note_opened();
  /// Takes new marks; returns how many there are.
  std::size_t take_marks();
  /// Returns true if `marks`, the number of marks since the last look, is too many. Marks caused by
  /// the server's stops do not count.
  bool too_many(std::size_t marks);
  /// Stops taking marks for a while.
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
  /// Places a pin for a thread that has been off its CPU since `since`. Returns false if its place
  /// is unknown.
  bool look_at_waiting(Thread& thread, std::uint64_t since, BranchSource& source);
  /// Adds a pin; returns its number.
  std::uint64_t add_pin(const Pin& pin);

  PerfKernel& kernel_;
  pid_t tid_;
  std::unique_ptr<SchedMarks> marks_;  ///< Null during a pause.
  MarkPace pace_;
  std::uint64_t lost_ = 0;           ///< Lost marks, except those of marks_.
  std::uint64_t switches_ = 0;       ///< The thread's switches when the pause began.
  std::uint64_t seen_switches_ = 0;  ///< The thread's switches at the last look that counted them.
  std::optional<Waits> waited_;      ///< Place at the last look during a pause.
  std::optional<std::uint64_t> logged_;  ///< Records and log entries at the last look during a
                                         ///< pause.
  std::uint32_t looks_at_resting_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::size_t stops_since_look_ = 0;
  std::function<std::uint64_t()> records_;
  std::deque<std::uint64_t> stops_;         ///< Stops not found among the marks yet.
  std::optional<decoder::TraceMark> left_;  ///< The departure since which the thread has been off
                                            ///< its CPU.
  std::optional<std::uint64_t> last_stop_;
  std::uint64_t opened_ns_ = 0;  ///< When marks_ was opened; earlier switches are unknown.
  bool has_marks_ = false;       ///< A mark has come since then.
  bool left_is_pinned_ = false;  ///< The newest pin tells the thread's place during this absence.
  std::uint64_t first_pin_ = 0;  ///< Number of the oldest pin that is kept.
  std::deque<Pin> pins_;
  std::deque<decoder::OffCpu> off_;
  decoder::ThreadTimes sums_;
};

}  // namespace backtrail::tracee
