#pragma once
/// @file
/// Branch tracing of one thread: its source, and the histories that listen to it.

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

/// How many branches there were.
class BranchCounter final : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override;
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

class ThreadTrace {
 public:
  /// @param config The client's wish; what is granted is in config().
  /// Error kUnsupported for a source that is not there.
  static Result<std::unique_ptr<ThreadTrace>> start(Thread& thread, SourceKind source,
                                                    const TraceConfig& config);
  ~ThreadTrace();
  ThreadTrace(const ThreadTrace&) = delete;
  ThreadTrace& operator=(const ThreadTrace&) = delete;

  [[nodiscard]] BranchSource& source() { return *source_; }
  [[nodiscard]] const BranchSource& source() const { return *source_; }
  [[nodiscard]] const TraceConfig& config() const { return config_; }
  /// Hands every record until now to the listeners, and then the marks until now.
  void flush();
  /// The thread begins another program: the history will forget everything before. Records that
  /// wait are handed to other listeners alone; without any they are dropped undecoded. Decoding
  /// them for the history would need the code that has just gone.
  void spare_history();
  /// Nobody will read the history or the store any more: they hear of nothing from now on, as in
  /// spare_history(). No effect where the one who recorded keeps logs undecoded
  /// (TraceConfig::log_bytes). At the latest the destructor does it.
  void end();
  /// BranchSource::keep_up(), and the marks until now behind the records until now.
  bool keep_up();
  /// Readable when much waits for keep_up() while the thread runs; -1: nothing ever does.
  [[nodiscard]] int wake_fd() const;
  /// From now on listeners hear when the thread gets and leaves a CPU. Errors: of SchedMarks.
  Result<void> mark_switches();
  /// So many of them the kernel had no room for.
  [[nodiscard]] std::uint64_t marks_lost() const { return marks_ ? marks_->lost() : 0; }
  /// From now on the store, and who listens to whole_hub(), hear of the kernel's branches, if they
  /// want them. The thread is stopped. Errors: of BranchSource.
  Result<void> see_kernel();
  /// From now on every record is kept, by a source that is one of so many (BranchSource::stream).
  Result<void> stream(std::size_t threads);
  /// From now on it is known when the thread is on a CPU, and where in the records about, if
  /// somebody looks now and then. Once; only with a history of blocks. Errors: of SchedMarks,
  /// kUnsupported.
  Result<void> start_clock();
  /// Null where there is none.
  [[nodiscard]] ThreadClock* clock() { return clock_.get(); }
  /// The thread has stopped.
  void note_stop() {
    ++before_clock_.stops;
    if (clock_) clock_->note_stop();
  }
  /// A second consumer with a life of its own: made at the first call.
  [[nodiscard]] decoder::BranchStore& store();
  /// It has been made, and is configured.
  [[nodiscard]] bool has_store() const;
  /// The client asked for it. Other threads of a process whose code runs from a cache run from it
  /// too, so that nothing they do to the code goes unseen.
  [[nodiscard]] bool asked_for() const { return asked_for_; }
  void set_asked_for(bool on) {
    asked_for_ = on;
    if (!on) wanted_ = false;
  }
  /// The client asks for what is recorded already: a history of the granted form of `config`. It
  /// begins at `pc`, the thread's next_pc(), as if recording did, where the thread was recorded for
  /// others' sake; else it has what was before. The thread is stopped.
  void hand_over(Process& process, TraceeAddr pc, const TraceConfig& config);
  /// It can be handed over so.
  [[nodiscard]] bool suits(const TraceConfig& config) const;
  /// The client will ask for it, when it hears of the thread or looks at it, and for what was
  /// recorded until then.
  void set_wanted() { wanted_ = true; }
  /// The client has asked, or will.
  [[nodiscard]] bool wanted() const { return asked_for_ || wanted_; }
  /// The thread is about to end: gives its history away, of what is not decoded the newest
  /// `log_bytes`. nullptr where the history is none of records. Other listeners get what comes.
  std::unique_ptr<EndedTrace> take_ended(std::uint64_t log_bytes);
  /// For further listeners.
  [[nodiscard]] decoder::TraceHub& hub() { return hub_; }
  /// For listeners to the branches of all levels: silent before see_kernel().
  [[nodiscard]] decoder::TraceHub& whole_hub() { return whole_hub_; }

  /// The client's history as blocks, when it asked for that format. `pc` is the thread's own.
  [[nodiscard]] decoder::BtsHistory* bts();
  [[nodiscard]] decoder::PtHistory* pt();
  /// Packets as the hardware wrote them, where the source has those (perf-pt).
  [[nodiscard]] decoder::PtRawHistory* raw_pt();

 private:
  ThreadTrace(Thread& thread, const TraceConfig& config, bool raw_packets);
  /// An empty one of the format in config_. It listens to nothing yet.
  decoder::TraceConsumer& make_history(Process& process);
  void remake_history(Process& process);
  void hand_on_marks();
  void hand_on_or_forget();
  /// The history, if it listens to hub_; null for raw packets.
  [[nodiscard]] decoder::TraceConsumer* listening_history();
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
  decoder::TraceHub whole_hub_;  ///< The kernel's branches too.
  bool sees_kernel_ = false;
  std::variant<std::unique_ptr<decoder::BtsHistory>, std::unique_ptr<decoder::PtHistory>,
               std::unique_ptr<decoder::PtRawHistory>>
      history_;
  std::unique_ptr<decoder::BranchStore> store_;
  std::unique_ptr<SchedMarks> marks_;
  ThreadClock::Before before_clock_{.since_ns = ThreadClock::now()};
  std::unique_ptr<ThreadClock> clock_;
  BranchCounter branches_;
  std::unique_ptr<BranchSource> source_;
};

/// Of the kernel's buffer of a thread of which every record is wanted, one of so many: they share
/// what one process may reasonably lock, and what this one may (PerfKernel::locked_limit).
[[nodiscard]] std::uint64_t stream_buffer_size(
    std::size_t threads, std::optional<std::uint64_t> locked_limit = std::nullopt);
/// Whole pages, a power of two of them, at least one; as the kernel's buffers are.
[[nodiscard]] std::uint64_t granted_buffer_size(std::uint64_t wanted_bytes);

}  // namespace backtrail::tracee
