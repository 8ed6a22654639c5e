// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a debugging session can do to its target: live processes, a core file with its trace, or a
/// fake in tests. Packet handlers use nothing else.
///
/// Optional abilities are separate interfaces; the target returns null for those it lacks, and
/// qSupported offers the others. All calls come from the tracing thread. Errors are Result values;
/// any call may return kTraceeGone, which is part of normal operation.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/cpu/gdb_registers.hpp"
#include "decoder/bts/branch_store.hpp"
#include "decoder/bts/bts_history.hpp"
#include "decoder/pt/cpu_identity.hpp"
#include "ptrace/source/source_kind.hpp"
#include "ptrace/tracee/breakpoint.hpp"
#include "ptrace/tracee/launch_spec.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/stop_event.hpp"
#include "ptrace/tracee/thread_id.hpp"
#include "ptrace/tracee/thread_options.hpp"
#include "server/target/past_control.hpp"

namespace backtrail::server {

using tracee::ThreadId;

struct ThreadInfo {
  ThreadId id;
  std::string name;  ///< The thread's comm.
  int core = -1;     ///< CPU the thread last ran on; -1 = unknown.
  std::vector<std::uint8_t>
      handle;  ///< pthread_t of the thread, from libthread_db; empty = unknown.
};

using tracee::LinkMapEntry;
using tracee::LinkMapList;

/// Order for one thread in a resume. Threads that are not named keep their state.
struct ThreadResume {
  ThreadId thread;
  tracee::ResumeAction action;
};

/// Launches, attaches to, detaches from and kills processes.
class ProcessControl {
 public:
  virtual ~ProcessControl() = default;
  /// Runs a program up to its first instruction. All its threads are stopped on return.
  virtual Result<pid_t> launch(const tracee::LaunchSpec& spec) = 0;
  /// Attaches to a running process. All its threads are stopped on return.
  virtual Result<pid_t> attach(pid_t pid) = 0;
  virtual Result<void> detach(pid_t pid) = 0;
  virtual Result<void> kill(pid_t pid) = 0;
};

/// Resumes and stops threads.
class RunControl {
 public:
  virtual ~RunControl() = default;
  /// All-stop (the default): an event stops every thread of every process before take_event()
  /// returns it. Non-stop: an event stops only its own thread.
  virtual void set_non_stop(bool on) = 0;
  /// Resumes threads, or asks them to stop (kStop). A thread with an event that take_event() has
  /// not yet returned does not run; that event comes first, and in all-stop no thread runs.
  virtual Result<void> resume(std::span<const ThreadResume> orders) = 0;
  /// Ctrl-C: stops one resumed thread with SIGINT, the leader of the first process if it runs. No
  /// effect if no thread is resumed.
  virtual void interrupt() = 0;
  /// Handles the kernel's pending events without waiting. A software source may execute threads
  /// inside this call, for as long as `input_fd` (-1 = none) has no input and no event is ready.
  virtual void pump(int input_fd) = 0;
  /// Returns a descriptor that is readable while pump() has work; pump() makes it unreadable. -1:
  /// events occur only on request.
  [[nodiscard]] virtual int event_fd() const { return -1; }
  /// Returns false if pump() has nothing to do before event_fd() is readable.
  [[nodiscard]] virtual bool needs_pump() { return true; }
  /// Returns a descriptor that also ends a long pump(), like input; events on it are events on
  /// event_fd() too. -1 = none.
  [[nodiscard]] virtual int side_fd() const { return -1; }
  /// Returns the oldest event; nullopt if there is none. All-stop: every thread is stopped when
  /// there is one.
  virtual std::optional<tracee::StopEvent> take_event() = 0;
  /// Returns a sentence for the debugger's user about the event just taken; all-stop only.
  virtual std::optional<std::string> take_message() { return std::nullopt; }
  /// Returns true if a thread is resumed and has no event waiting.
  [[nodiscard]] virtual bool running() const = 0;
  [[nodiscard]] virtual bool is_running(ThreadId thread) const = 0;
  /// Stops every running thread without an event for it (for a client that connects in all-stop).
  virtual void stop_all() = 0;
  /// Says whether the client knows that the stopped thread is stopped (`known`), or takes it for a
  /// running one: then kStop reports it.
  virtual void set_stop_known(ThreadId thread, bool known) {
    (void)thread;
    (void)known;
  }

  // Events to report, and signals to pass to the program without a report. Signal numbers are
  // Linux's.
  virtual void set_pass_signals(std::set<int> signals) = 0;
  virtual void set_program_signals(std::set<int> signals) = 0;
  /// Sets the system calls to catch: nullopt = none; an empty set = all.
  virtual Result<void> set_catch_syscalls(pid_t pid,
                                          std::optional<std::set<std::int64_t>> numbers) = 0;
  virtual void set_thread_events(bool on) = 0;
  /// Chooses events of one thread and of those that it will make.
  virtual void set_thread_options(ThreadId /*thread*/, tracee::ThreadOptions /*options*/) {}
  /// Returns the threads that ended in all-stop when another event stopped the program, and whose
  /// ends will be events when the client resumes them.
  [[nodiscard]] virtual std::vector<ThreadId> untold_thread_ends() const { return {}; }
  /// Call before the client reads the list of threads, from which it knows these ends.
  virtual void update_thread_list() {}
  /// Sets which of fork, vfork and exec the client understands. The others are handled without a
  /// report; a forked child is then detached from, without breakpoints.
  virtual void set_reported_events(bool fork, bool vfork, bool exec) = 0;
};

/// Inserts and removes breakpoints and watchpoints. Inserting one again replaces its condition.
class BreakpointControl {
 public:
  virtual ~BreakpointControl() = default;
  /// Errors: kBusy (no debug register is free), ENODEV (debug registers do not trap here),
  /// kUnsupported, kUnreadable (bad address).
  virtual Result<void> insert(pid_t pid, tracee::BreakpointSpec spec) = 0;
  /// Error kNotFound.
  virtual Result<void> remove(pid_t pid, const tracee::BreakpointSpec& spec) = 0;
};

/// Intel PT packets; `raw` is empty if nothing is new.
struct PtTrace {
  std::vector<std::uint8_t> raw;
  /// CPU that wrote the packets, so that the client's decoder can work around its errata. Absent
  /// for packets that the server encoded itself, which have none.
  std::optional<decoder::CpuIdentity> cpu = std::nullopt;
};
using TraceDocument = std::variant<std::vector<decoder::Block>, PtTrace>;
enum class TraceRead : std::uint8_t { kAll, kNew, kDelta };

/// Socket on which other programs can listen to the records.
struct TailListening {
  std::string path = {};  ///< Path of the socket file; empty = none.
  std::string spool_folder =
      {};  ///< Folder for records of clients that do not keep up; empty = none.
  std::uint64_t spool_bytes = 4ULL << 30U;  ///< Most bytes in the spool for one client.
};

/// Branch tracing of single threads.
class BranchTracing {
 public:
  virtual ~BranchTracing() = default;
  /// Errors: kAlreadyEnabled, kNotFound, kUnsupported. A running thread can be enabled too.
  virtual Result<void> enable(ThreadId thread, tracee::TraceConfig config) = 0;
  /// Returns a text for people about an error of enable(): the missing ability, and who could
  /// change that.
  [[nodiscard]] virtual std::string why_not_enabled(const Error& error) const {
    return error.message();
  }
  virtual Result<void> disable(ThreadId thread) = 0;  ///< Error kNotEnabled.
  /// Returns the configuration in force, with the granted buffer size (whole pages, a power of
  /// two); nullopt if tracing is off.
  virtual std::optional<tracee::TraceConfig> config(ThreadId thread) = 0;
  /// Errors: kNotEnabled; kOverflow if a delta cannot be made; kUnsupported for a PT delta.
  virtual Result<TraceDocument> read(ThreadId thread, TraceRead what) = 0;
  /// Returns the thread's branch store (`monitor bts`), which has every record until now. Errors:
  /// kNotEnabled, kUnsupported.
  virtual Result<decoder::BranchStore*> store(ThreadId thread);
  /// Returns the store of all threads of a process that are recorded now or later. Errors:
  /// kNotEnabled, kUnsupported.
  virtual Result<decoder::BranchStore*> process_store(pid_t pid);
  /// Feeds the thread's stores with every record from now on. A software source always does so. A
  /// hardware source keeps only what its buffer holds, unless `every_record` makes it stream as far
  /// as it can. Error: the source's.
  virtual Result<void> feed_stores(ThreadId thread, bool every_record);
  /// Records the kernel's branches for stores that want them. Error: the errno.
  virtual Result<void> see_kernel(ThreadId thread);
  /// Records context switches for stores. Error: the errno.
  virtual Result<void> mark_switches(ThreadId thread);
  /// Opens the socket for `backtrail tail`. Errors: kUnsupported, or the errno.
  virtual Result<void> listen_for_tails(const TailListening& options);
  /// Begins to record every thread, present and future, so that it can go back (PastControl), or
  /// ends that. Errors: the source's, of a thread that cannot be recorded; kBusy if a thread is in
  /// the past; kUnsupported.
  virtual Result<void> keep_history(bool on);
  /// Returns a text for people about an error of keep_history().
  [[nodiscard]] virtual std::string why_no_history(const Error& error) const {
    return error.message();
  }
  /// Describes for people what is recorded for going back, in lines.
  virtual std::string describe_history() { return "The history is that of the recording.\n"; }
  /// Describes for people the source in use, a line a thread. For `monitor source` and `monitor
  /// stats`.
  virtual std::string describe() = 0;
};

class Target {
 public:
  virtual ~Target() = default;

  // Optional abilities; null if the target lacks one.
  virtual ProcessControl* process_control() = 0;
  virtual RunControl* run_control() = 0;
  virtual BreakpointControl* breakpoint_control() = 0;
  virtual BranchTracing* branch_tracing() = 0;
  virtual PastControl* past_control() { return nullptr; }

  [[nodiscard]] virtual std::vector<pid_t> processes() const = 0;
  /// Returns the threads of one process, oldest first; empty for an unknown process.
  [[nodiscard]] virtual std::vector<ThreadInfo> threads(pid_t pid) const = 0;
  /// Returns only the ids of threads(); a target may do so without reading names.
  [[nodiscard]] virtual std::vector<ThreadId> thread_ids(pid_t pid) const;
  /// Returns true if the client may name the thread.
  [[nodiscard]] virtual bool alive(ThreadId thread) const = 0;
  /// Returns true if the thread's process has ended, or is about to because it has been killed, and
  /// take_event() has not returned its end: the client may still name the thread, but learns that
  /// it is dead if it asks.
  [[nodiscard]] virtual bool has_ended(ThreadId thread) const {
    (void)thread;
    return false;
  }
  /// Returns the CPU the thread last ran on; -1 = unknown. Called at every stop.
  [[nodiscard]] virtual int core(ThreadId thread) const;
  /// Returns true if the process was attached to rather than launched.
  [[nodiscard]] virtual bool was_attached(pid_t pid) const = 0;
  /// Returns true if the process's files are to be opened as the process sees them (vFile:setfs).
  [[nodiscard]] virtual bool has_own_files(pid_t pid) const {
    (void)pid;
    return true;
  }
  /// Returns the event that a stopped thread last reported or would report; kStopped if it has
  /// none.
  [[nodiscard]] virtual tracee::StopEvent last_stop(ThreadId thread) const = 0;

  /// The returned set is valid until the process execs or ends.
  virtual Result<const arch::cpu::GdbRegisterSet*> register_set(pid_t pid) = 0;
  virtual Result<arch::cpu::RawRegisters> read_registers(ThreadId thread) = 0;
  /// Returns the general registers, rip and the like only, or all.
  virtual Result<arch::cpu::RawRegisters> read_general_registers(ThreadId thread) {
    return read_registers(thread);
  }
  /// Returns which of read_registers()'s values are known; all of them unless the thread is in the
  /// past.
  [[nodiscard]] virtual KnownRegisters known_registers(ThreadId thread) {
    (void)thread;
    return {};
  }
  virtual Result<void> write_registers(ThreadId thread, const arch::cpu::RawRegisters& regs) = 0;

  /// Reads up to out.size() bytes; returns how many bytes from `address` on were readable (0 =
  /// none). Shows the program's own bytes under breakpoints.
  virtual Result<std::size_t> read_memory(pid_t pid, TraceeAddr address,
                                          std::span<std::uint8_t> out) = 0;
  /// Writes all bytes or returns an error.
  virtual Result<void> write_memory(pid_t pid, TraceeAddr address,
                                    std::span<const std::uint8_t> data) = 0;

  virtual Result<std::vector<std::uint8_t>> auxv(pid_t pid) = 0;
  virtual Result<std::string> exec_file(pid_t pid) = 0;
  /// Returns where the client finds the file that the program had at this path.
  virtual std::string file_path(const std::string& path) { return path; }
  virtual Result<LinkMapList> link_maps(pid_t pid) = 0;
  /// Uses the siginfo layout of the program's own word size (128 bytes).
  virtual Result<std::vector<std::uint8_t>> siginfo(ThreadId thread) = 0;
  virtual Result<void> set_siginfo(ThreadId thread, std::span<const std::uint8_t> bytes) = 0;

  /// Returns names of symbols that the target wants from the program's symbol tables, which only
  /// the client has (for libthread_db). Called when symbols may have become available, and again
  /// after each symbols_resolved() until it returns no new name. If the client does not know the
  /// first name, the others are not asked.
  virtual std::vector<std::string> wanted_symbols(pid_t pid) = 0;
  /// Takes the client's answers; names it does not know are absent.
  virtual void symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) = 0;
  /// Sets the folders to search for libthread_db; empty = the built-in ones.
  virtual void set_thread_db_search_path(const std::string& path);
  /// Returns the address of a thread-local variable. Error kUnsupported without libthread_db.
  virtual Result<TraceeAddr> tls_address(ThreadId thread, std::uint64_t offset,
                                         TraceeAddr link_map) = 0;
};

}  // namespace backtrail::server
