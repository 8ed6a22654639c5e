#pragma once
/// @file
/// What every branch source is: the part that turns one thread's execution into branch records.

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "arch/base/result.hpp"
#include "decoder/trace/record.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::decoder {
class CacheLog;
class TraceConsumer;
}  // namespace backtrail::decoder

namespace backtrail::tracee {

class Thread;

/// How the engine wants a recorded thread to go on.
struct SourceResume {
  bool step = false;      ///< Stop after one instruction.
  bool syscalls = false;  ///< Stop at entry and exit of system calls (PTRACE_SYSCALL).
  int signal = 0;         ///< To deliver (Linux number); only from a signal-delivery stop.
};

enum class StopVerdict : std::uint8_t {
  kReport,   ///< The engine handles the stop as if the thread ran natively.
  kResumed,  ///< It was the source's own; the thread is running again.
  /// The thread is about to ask for a process to be traced by another than us
  /// (trace_request()), and has native registers.
  kTraceRequest,
};

/// Records one thread. Created when the thread is stopped, or running natively until its next stop.
///
/// The engine lets the source set the thread going and shows it every stop first, so a source may
/// single-step, translate, or just let the hardware record. All calls come from the tracer thread;
/// the thread is in a ptrace stop unless said otherwise.
class BranchSource {
 public:
  virtual ~BranchSource() = default;
  [[nodiscard]] virtual SourceKind kind() const = 0;

  /// Sets the thread going. Errors: kTraceeGone.
  virtual Result<void> resume(Thread& thread, const SourceResume& how) = 0;
  /// A stop of the thread. On kReport its registers are native ones.
  virtual StopVerdict on_stop(Thread& thread, const WaitStatus& status) = 0;
  /// After kTraceRequest: a thread of the process that is to be traced; our id of it.
  [[nodiscard]] virtual pid_t trace_request() const { return 0; }
  /// The thread, which runs, may ask for something without stopping: until let_wait(), serve() is
  /// to be called as often as can be.
  [[nodiscard]] virtual bool may_ask() const { return false; }
  /// Answers the thread, which runs; false when it has not asked.
  virtual bool serve(Thread& thread) {
    (void)thread;
    return false;
  }
  virtual void let_wait() {}
  /// The thread, which runs, has to stop then, even if nothing happens; nothing: no need.
  [[nodiscard]] virtual std::optional<std::chrono::steady_clock::time_point> stop_due() const {
    return std::nullopt;
  }
  /// Signals that the thread does not block and the kernel believes it does: a thread or process
  /// that it makes has to be told.
  [[nodiscard]] virtual std::uint64_t held_signals() const { return 0; }
  /// The debugger moved the pc.
  virtual void on_pc_written(TraceeAddr from, TraceeAddr to) = 0;
  /// Code of the program in [begin, end) was written by the debugger.
  virtual void on_code_written(TraceeAddr begin, TraceeAddr end) = 0;
  /// The debugger wants execution to stop at `address`. Threads may run.
  virtual void on_breakpoint(TraceeAddr address) { (void)address; }
  /// The consumers hear of the place in the stream that is `ahead` numbers of a log, or records,
  /// behind what has been taken until now, when it has been handed on
  /// (decoder/trace/stream_pin.hpp). Nothing happens where the stream is not made here. The thread
  /// may run.
  virtual void pin(std::uint64_t id, std::uint32_t ahead) { (void)id, (void)ahead; }
  /// Hands every record until now to the consumers. The thread may run.
  virtual void flush() = 0;
  /// Only the newest so many branches are wanted of what has not been handed on yet. Returns how
  /// many older ones the next flush() leaves out.
  virtual std::uint64_t keep_newest(std::uint64_t branches) {
    (void)branches;
    return 0;
  }
  /// Nobody wants what has not been handed on yet: it is dropped, undecoded where it is a log. What
  /// a running thread has not logged yet may still come.
  virtual void forget() {}
  /// The thread is about to end: gives away what has not been handed on yet. It may lie in the
  /// thread's memory still (CacheLog::own_newest). nullptr: there is no such log, and flush() hands
  /// everything on.
  virtual std::unique_ptr<decoder::CacheLog> take_log_of_ended();
  /// Somebody wants every record from now on, the oldest too when there are many: nothing is to be
  /// overwritten that was not handed on. A buffer of the kernel's should have that size at least.
  /// The thread is stopped. Errors: what the kernel said; it goes on as before then.
  virtual Result<void> stream(std::uint64_t size_bytes) {
    (void)size_bytes;
    return {};
  }
  /// That is so already.
  [[nodiscard]] virtual bool streams() const { return wake_fd() >= 0; }
  /// Nobody wants that any more; what it costs may end. The thread may run.
  virtual void end_stream() {}
  /// From now on `whole` (borrowed) gets the kernel's branches too, all in their order; other
  /// consumers get what they got. The thread is stopped. Errors: EOPNOTSUPP, or the kernel's.
  virtual Result<void> see_kernel(decoder::TraceConsumer& whole) {
    (void)whole;
    return fail(errno_error(EOPNOTSUPP, "this source sees the program only"));
  }
  /// Readable when much waits to be handed on while the thread runs; -1: that cannot be.
  [[nodiscard]] virtual int wake_fd() const { return -1; }
  /// Hands on what waits. Returns whether the thread is faster than we are: it should be stopped
  /// for a flush(), or something will be lost.
  virtual bool keep_up() { return false; }
  /// Undoes whatever the source did to the thread; it will run natively afterwards.
  virtual void detach(Thread& thread) = 0;
  /// What it has done until now, the branches aside, for those who do not add to it themselves.
  virtual void add_to(SourceStatistics& sums) const { (void)sums; }
  /// Numbers for `monitor stats`, in one line.
  [[nodiscard]] virtual std::string statistics() const = 0;
};

}  // namespace backtrail::tracee
