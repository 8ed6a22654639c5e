// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface of branch sources. A branch source turns one thread's execution into branch records.

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

/// How the engine wants a recorded thread to run on.
struct SourceResume {
  bool step = false;      ///< Stop after one instruction.
  bool syscalls = false;  ///< Stop at entry to and exit from system calls (PTRACE_SYSCALL).
  int signal = 0;         ///< Signal to deliver (Linux number); only from a signal-delivery stop.
};

enum class StopVerdict : std::uint8_t {
  kReport,   ///< The engine handles the stop as if the thread ran natively.
  kResumed,  ///< The stop was the source's own; the thread is running again.
  /// The thread has native registers and is about to request that another process trace a process
  /// that the server traces; see trace_request().
  kTraceRequest,
};

/// Records one thread. Created while the thread is stopped, or while it runs natively towards its
/// next stop.
///
/// The engine lets the source resume the thread and shows it every stop first. A source may
/// therefore single-step, translate, or let the hardware record. All calls come from the tracing
/// thread; the thread is in a ptrace stop unless stated otherwise.
class BranchSource {
 public:
  virtual ~BranchSource() = default;
  [[nodiscard]] virtual SourceKind kind() const = 0;
  /// Returns true if the source sees every system call that concerns the recorder before the thread
  /// makes it: calls that write memory without a store (CodeWriters), or that show an affinity.
  [[nodiscard]] virtual bool sees_calls() const { return false; }

  /// Resumes the thread. Errors: kTraceeGone.
  virtual Result<void> resume(Thread& thread, const SourceResume& how) = 0;
  /// Handles a stop of the thread. On kReport its registers are native.
  virtual StopVerdict on_stop(Thread& thread, const WaitStatus& status) = 0;
  /// After kTraceRequest: returns a thread, by the server's id, of the process to be traced.
  [[nodiscard]] virtual pid_t trace_request() const { return 0; }
  /// Call before on_stop(): tells whether serve() will be called as often as possible if the stop
  /// lets the thread post requests.
  virtual void expect_service(bool on) { (void)on; }
  /// Returns true if the running thread may post requests without stopping. Until let_wait(),
  /// serve() should then be called as often as possible.
  [[nodiscard]] virtual bool may_ask() const { return false; }
  /// Answers a request of the running thread; returns false if there is none.
  virtual bool serve(Thread& thread) {
    (void)thread;
    return false;
  }
  virtual void let_wait() {}
  /// Does a part of what the running thread is likely to ask for next. Returns false if there is
  /// nothing more to do.
  virtual bool work_ahead(Thread& thread) {
    (void)thread;
    return false;
  }
  /// Returns when the running thread must be stopped even if nothing happens; nullopt if it need
  /// not be.
  [[nodiscard]] virtual std::optional<std::chrono::steady_clock::time_point> stop_due() const {
    return std::nullopt;
  }
  /// Returns the signals that are blocked in the kernel but not by the thread itself. Threads and
  /// processes that it creates inherit that mask and must be corrected.
  [[nodiscard]] virtual std::uint64_t held_signals() const { return 0; }
  /// Tells the source that the debugger moved the pc.
  virtual void on_pc_written(TraceeAddr from, TraceeAddr to) = 0;
  /// Tells the source that the debugger wrote program code in [begin, end).
  virtual void on_code_written(TraceeAddr begin, TraceeAddr end) = 0;
  /// Tells the source that the debugger set a breakpoint at `address`. Threads may run.
  virtual void on_breakpoint(TraceeAddr address) { (void)address; }
  /// Places a pin in the record stream (decoder/trace/stream_pin.hpp), `ahead` log entries or
  /// records after the ones taken so far. Consumers hear of it when everything before it has been
  /// handed on. No effect if the source does not make the stream itself. The thread may run.
  virtual void pin(std::uint64_t id, std::uint32_t ahead) { (void)id, (void)ahead; }
  /// Hands all records so far to the consumers. The thread may run.
  virtual void flush() = 0;
  /// Keeps only the newest `branches` branches of those not handed on yet. Returns how many older
  /// ones the next flush() omits.
  virtual std::uint64_t keep_newest(std::uint64_t branches) {
    (void)branches;
    return 0;
  }
  /// Drops what has not been handed on yet; a log is dropped undecoded. Entries that a running
  /// thread has yet to log may still come.
  virtual void forget() {}
  /// Call before the thread ends. Returns what has not been handed on yet, as an undecoded log,
  /// which may still lie in the thread's memory (CacheLog::own_newest). Null if there is no such
  /// log; flush() then hands everything on.
  virtual std::unique_ptr<decoder::CacheLog> take_log_of_ended();
  /// Keeps every record from now on, however many there are: nothing is overwritten before it has
  /// been handed on. A buffer of the kernel should have at least `size_bytes` bytes. The thread is
  /// stopped. Errors: the kernel's; recording then continues as before.
  virtual Result<void> stream(std::uint64_t size_bytes) {
    (void)size_bytes;
    return {};
  }
  /// Returns true if every record is kept.
  [[nodiscard]] virtual bool streams() const { return wake_fd() >= 0; }
  /// Ends stream(): not every record is needed any more. The thread may run.
  virtual void end_stream() {}
  /// Passes the kernel's branches, too, to `whole` (borrowed) from now on, in order with the
  /// program's; other consumers get what they got before. The thread is stopped. Errors:
  /// EOPNOTSUPP, or the kernel's.
  virtual Result<void> see_kernel(decoder::TraceConsumer& whole) {
    (void)whole;
    return fail(errno_error(EOPNOTSUPP, "this source sees the program only"));
  }
  /// Descriptor that becomes readable when many records of a running thread wait; -1 if none.
  [[nodiscard]] virtual int wake_fd() const { return -1; }
  /// Hands on waiting records. Returns true if the thread produces records faster than they are
  /// taken: unless it is stopped for a flush(), records will be lost.
  virtual bool keep_up() { return false; }
  /// Undoes all that the source did to the thread, which runs natively afterwards.
  virtual void detach(Thread& thread) = 0;
  /// Translates the code of the thread's process, which need not have run, until there are
  /// `most_bytes` of translations; they are kept for other processes. Returns the number of
  /// superblocks made. The thread must be stopped between two instructions or, once the process has
  /// translations, in any stop. Errors: kUnsupported if the source does not translate.
  virtual Result<std::size_t> translate_ahead(Thread& thread, std::uint64_t most_bytes) {
    (void)thread, (void)most_bytes;
    return fail(TraceErrc::kUnsupported, "translate ahead");
  }
  /// Adds what the source has counted so far, except branches. For sources that do not add to the
  /// sums while they run.
  virtual void add_to(SourceStatistics& sums) const { (void)sums; }
  /// Returns numbers for `monitor stats`, in one line.
  [[nodiscard]] virtual std::string statistics() const = 0;
};

}  // namespace backtrail::tracee
