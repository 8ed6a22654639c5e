// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Branch tracing of one thread: its source, and the consumers of its records.

#include <memory>
#include <variant>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/bts/branch_store.hpp"
#include "decoder/bts/bts_history.hpp"
#include "decoder/pt/pt_history.hpp"
#include "decoder/pt/pt_raw_history.hpp"
#include "decoder/trace/trace_hub.hpp"
#include "ptrace/perf/sched_marks.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/source_kind.hpp"
#include "ptrace/trace/ended_trace.hpp"
#include "ptrace/trace/thread_clock.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

/// Counts branches.
class BranchCounter final : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override;
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

class ThreadTrace {
 public:
  /// Starts tracing.
  /// @param config The client's request; config() has what was granted.
  /// Error kUnsupported if the source is not available.
  static Result<std::unique_ptr<ThreadTrace>> start(Thread& thread, SourceKind source,
                                                    const TraceConfig& config);
  ~ThreadTrace();
  ThreadTrace(const ThreadTrace&) = delete;
  ThreadTrace& operator=(const ThreadTrace&) = delete;

  [[nodiscard]] BranchSource& source() { return *source_; }
  [[nodiscard]] const BranchSource& source() const { return *source_; }
  [[nodiscard]] const TraceConfig& config() const { return config_; }
  /// Hands all records so far to the consumers, and then the marks so far.
  void flush();
  /// Call when the thread begins another program, so that the history drops everything before.
  /// Waiting records go to the other consumers only; without any they are dropped undecoded.
  /// Decoding them for the history would need code that is gone.
  void spare_history();
  /// Call when the history and the store will not be read any more: they get no further records, as
  /// in spare_history(). No effect if undecoded logs are kept (TraceConfig::log_bytes). The
  /// destructor calls it at the latest.
  void end();
  /// Calls BranchSource::keep_up(), then hands on the marks so far.
  bool keep_up();
  /// Descriptor that becomes readable when much waits for keep_up() while the thread runs; -1 if
  /// there is none.
  [[nodiscard]] int wake_fd() const;
  /// Tells consumers from now on when the thread gets and leaves a CPU. Errors: those of
  /// SchedMarks::open().
  Result<void> mark_switches();
  /// Number of marks that the kernel dropped for lack of room.
  [[nodiscard]] std::uint64_t marks_lost() const { return marks_ ? marks_->lost() : 0; }
  /// Passes the kernel's branches from now on to the store and to consumers in whole_hub(), if they
  /// want them. The thread is stopped. Errors: those of BranchSource::see_kernel().
  Result<void> see_kernel();
  /// Keeps every record from now on (BranchSource::stream). `threads`: number of threads that share
  /// the memory for buffers.
  Result<void> stream(std::size_t threads);
  /// Starts the thread's clock: when the thread is on a CPU, and roughly where in the records,
  /// provided that look() is called now and then. Call at most once, and only with a history of
  /// blocks. Errors: those of SchedMarks::open(), kUnsupported.
  Result<void> start_clock();
  /// Null if there is none.
  [[nodiscard]] ThreadClock* clock() { return clock_.get(); }
  /// Notes a stop of the thread.
  void note_stop() {
    ++before_clock_.stops;
    if (clock_) clock_->note_stop();
  }
  /// Returns the second consumer, which has a life of its own; made at the first call.
  [[nodiscard]] decoder::BranchStore& store();
  /// Returns true if the store has been made and is configured.
  [[nodiscard]] bool has_store() const;
  /// Returns true if the client asked for this trace. The other threads of a process with
  /// translated code run translated, too, so that nothing they do to code goes unseen.
  [[nodiscard]] bool asked_for() const { return asked_for_; }
  void set_asked_for(bool on) {
    asked_for_ = on;
    if (!on) wanted_ = false;
  }
  /// Gives the client what is recorded already, as a history of the granted form of `config`. If
  /// the thread was recorded only for other threads' sake, the history begins at `pc`, the thread's
  /// next_pc(), as if recording began there; otherwise it contains the earlier records. The thread
  /// is stopped.
  void hand_over(Process& process, TraceeAddr pc, const TraceConfig& config);
  /// Returns true if hand_over() can satisfy `config`.
  [[nodiscard]] bool suits(const TraceConfig& config) const;
  /// Notes that the client will ask for the trace once it knows of the thread, and for what was
  /// recorded until then.
  void set_wanted() { wanted_ = true; }
  /// Says whether past() is kept whatever the client asks for. Call with true before the client has
  /// asked.
  void keep_past(bool on);
  [[nodiscard]] bool keeps_past() const { return keeps_past_; }
  /// Returns the server's own history, which the client's requests do not change; null without
  /// keep_past(), or if the source does not make records.
  [[nodiscard]] decoder::BtsHistory* past();
  /// Ends what hand_over() began: the client does not ask any more, but past() goes on. If it asks
  /// again, its history begins then. The thread is stopped.
  void take_back();
  /// Returns true if the client has asked or will ask.
  [[nodiscard]] bool wanted() const { return asked_for_ || wanted_; }
  /// Call before the thread ends: returns its history and the newest `log_bytes` bytes of its
  /// undecoded log. Null if the history does not hold records. Other consumers get their records.
  std::unique_ptr<EndedTrace> take_ended(std::uint64_t log_bytes);
  /// The hub, for further consumers.
  [[nodiscard]] decoder::TraceHub& hub() { return hub_; }
  /// The hub for consumers of the branches of all levels; silent before see_kernel().
  [[nodiscard]] decoder::TraceHub& whole_hub() { return whole_hub_; }

  /// The client's history as blocks, if it asked for that format; else null. `pc` is the thread's
  /// own.
  [[nodiscard]] decoder::BtsHistory* bts();
  [[nodiscard]] decoder::PtHistory* pt();
  /// Packets as the hardware wrote them, if the source has them (perf-pt); else null.
  [[nodiscard]] decoder::PtRawHistory* raw_pt();

 private:
  ThreadTrace(Thread& thread, const TraceConfig& config, bool raw_packets);
  /// Makes an empty history of the format in config_. It is in no hub yet.
  decoder::TraceConsumer& make_history(Process& process);
  void remake_history(Process& process);
  [[nodiscard]] std::vector<decoder::TraceConsumer*> listening_histories();
  void hand_on_marks();
  void hand_on_or_forget();
  void use(std::unique_ptr<BranchSource> source);
  void add_statistics() const;
  static Result<std::unique_ptr<ThreadTrace>> start_hardware(Thread& thread, SourceKind source,
                                                             const TraceConfig& config);

  TraceConfig config_;
  Thread& thread_;
  ThreadId id_;
  bool asked_for_ = true;
  bool wanted_ = false;
  decoder::TraceHub hub_;
  decoder::TraceHub whole_hub_;  ///< Gets the kernel's branches, too.
  bool sees_kernel_ = false;
  std::variant<std::unique_ptr<decoder::BtsHistory>, std::unique_ptr<decoder::PtHistory>,
               std::unique_ptr<decoder::PtRawHistory>>
      history_;
  bool keeps_past_ = false;
  bool taken_back_ = false;  ///< The client's next history begins when it asks for it.
  /// past() while the client has another history of its own in history_; else null.
  std::unique_ptr<decoder::BtsHistory> past_;
  std::unique_ptr<decoder::BranchStore> store_;
  std::unique_ptr<SchedMarks> marks_;
  ThreadClock::Before before_clock_{.since_ns = ThreadClock::now()};
  std::unique_ptr<ThreadClock> clock_;
  BranchCounter branches_;
  std::unique_ptr<BranchSource> source_;
};

/// Returns the size in bytes of the kernel's buffer for a thread whose every record is kept.
/// `threads` threads share what a process may reasonably lock and what this one may
/// (PerfKernel::locked_limit).
[[nodiscard]] std::uint64_t stream_buffer_size(
    std::size_t threads, std::optional<std::uint64_t> locked_limit = std::nullopt);
/// Rounds up to a power of two of pages, at least one, as the kernel's buffers are.
[[nodiscard]] std::uint64_t granted_buffer_size(std::uint64_t wanted_bytes);

}  // namespace backtrail::tracee
