#pragma once
/// @file
/// What a debugging session can do to whatever it debugs: a live process, a core file with its
/// trace, or a fake in tests. Packet handlers know nothing else.
///
/// Optional abilities are interfaces of their own that a target may lack (null); qSupported is
/// made from what is present. All calls come from one thread, the one that traces.
/// Errors are Result values; kTraceeGone is a normal one everywhere.

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
#include "arch/x86/gdb_registers.hpp"
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
#include "server/target/past_control.hpp"

namespace backtrail::server {

using tracee::ThreadId;

struct ThreadInfo {
  ThreadId id;
  std::string name;                  ///< The thread's comm.
  int core = -1;                     ///< CPU it last ran on; -1 = unknown.
  std::vector<std::uint8_t> handle;  ///< Its pthread_t, as libthread_db has it; empty = unknown.
};

using tracee::LinkMapEntry;
using tracee::LinkMapList;

/// A thread's order in a resume; threads not named stay as they are.
struct ThreadResume {
  ThreadId thread;
  tracee::ResumeAction action;
};

/// Starts, takes over, leaves and ends processes.
class ProcessControl {
 public:
  virtual ~ProcessControl() = default;
  /// Runs a program up to its first instruction; all its threads are stopped on return.
  virtual Result<pid_t> launch(const tracee::LaunchSpec& spec) = 0;
  /// Takes over a running process; all its threads are stopped on return.
  virtual Result<pid_t> attach(pid_t pid) = 0;
  virtual Result<void> detach(pid_t pid) = 0;
  virtual Result<void> kill(pid_t pid) = 0;
};

/// Runs and stops threads.
class RunControl {
 public:
  virtual ~RunControl() = default;
  /// All-stop (the default): one event stops every thread of every process before it is handed
  /// out. Non-stop: only the thread that has the event.
  virtual void set_non_stop(bool on) = 0;
  /// Sets threads going (or, kStop, asks them to stop). A thread that holds an event not yet
  /// handed out does not run; its event comes out first, and then in all-stop nobody runs.
  virtual Result<void> resume(std::span<const ThreadResume> orders) = 0;
  /// Ctrl-C: SIGINT to the foreground process group of the process the debugger watches.
  virtual void interrupt() = 0;
  /// Handles whatever the kernel has to say, without waiting. While threads are executed by
  /// software it may go on for as long as nothing is to be read from `input_fd` (-1 = none) and
  /// no event is ready.
  virtual void pump(int input_fd) = 0;
  /// Becomes readable when pump() has something to do, and pump() makes it unreadable again;
  /// -1 = nothing ever happens without being asked for.
  [[nodiscard]] virtual int event_fd() const { return -1; }
  /// Part of the former: what a pump() that goes on for long comes back for, beside input.
  [[nodiscard]] virtual int side_fd() const { return -1; }
  /// The next event, oldest first. All-stop: every thread is stopped when there is one.
  virtual std::optional<tracee::StopEvent> take_event() = 0;
  /// A sentence for the debugger's user about the event to come; all-stop only.
  virtual std::optional<std::string> take_message() { return std::nullopt; }
  /// Some thread is running (resumed and with no event waiting).
  [[nodiscard]] virtual bool running() const = 0;
  [[nodiscard]] virtual bool is_running(ThreadId thread) const = 0;
  /// Stops every running thread without an event for it (a client connects anew in all-stop).
  virtual void stop_all() = 0;

  // What is reported, and what is passed on silently. Linux signal numbers.
  virtual void set_pass_signals(std::set<int> signals) = 0;
  virtual void set_program_signals(std::set<int> signals) = 0;
  /// nullopt: off; empty: every system call.
  virtual Result<void> set_catch_syscalls(pid_t pid,
                                          std::optional<std::set<std::int64_t>> numbers) = 0;
  virtual void set_thread_events(bool on) = 0;
  /// Which of fork, vfork and exec the client understands; others are handled silently (a forked
  /// child is cleaned of breakpoints and let go).
  virtual void set_reported_events(bool fork, bool vfork, bool exec) = 0;
};

/// Inserts and removes breakpoints and watchpoints. Inserting twice is one insertion with the
/// newer condition.
class BreakpointControl {
 public:
  virtual ~BreakpointControl() = default;
  /// Errors: kBusy no debug register is left; ENODEV they do not trap here; kUnsupported;
  /// kUnreadable bad address.
  virtual Result<void> insert(pid_t pid, tracee::BreakpointSpec spec) = 0;
  /// Error kNotFound.
  virtual Result<void> remove(pid_t pid, const tracee::BreakpointSpec& spec) = 0;
};

/// Intel PT bytes, with an empty vector where nothing new is to be said.
struct PtTrace {
  std::vector<std::uint8_t> raw;
  /// The CPU that wrote them, so that the client's decoder works around its errata. Absent for
  /// packets of our own making, which have none.
  std::optional<decoder::CpuIdentity> cpu = std::nullopt;
};
using TraceDocument = std::variant<std::vector<decoder::Block>, PtTrace>;
enum class TraceRead : std::uint8_t { kAll, kNew, kDelta };

/// Where others may listen to the records.
struct TailListening {
  std::string path = {};                    ///< A socket file; empty = nowhere.
  std::string spool_folder = {};            ///< For clients that do not keep up; empty = none.
  std::uint64_t spool_bytes = 4ULL << 30U;  ///< What may wait there for one client.
};

/// Branch tracing by thread.
class BranchTracing {
 public:
  virtual ~BranchTracing() = default;
  /// Errors: kAlreadyEnabled, kNotFound, kUnsupported. Threads that run can be enabled too.
  virtual Result<void> enable(ThreadId thread, tracee::TraceConfig config) = 0;
  /// What to tell people of such an error: what is missing, and who could change it.
  [[nodiscard]] virtual std::string why_not_enabled(const Error& error) const {
    return error.message();
  }
  virtual Result<void> disable(ThreadId thread) = 0;  ///< Error kNotEnabled.
  /// What is in force; the size as it was granted (whole pages, a power of two of them).
  virtual std::optional<tracee::TraceConfig> config(ThreadId thread) = 0;
  /// Errors: kNotEnabled; kOverflow for a delta that cannot be made; kUnsupported for a PT delta.
  virtual Result<TraceDocument> read(ThreadId thread, TraceRead what) = 0;
  /// The thread's branch store (`monitor bts`), with every record until now. Errors: kNotEnabled,
  /// kUnsupported.
  virtual Result<decoder::BranchStore*> store(ThreadId thread);
  /// The same for all threads of the process that are recorded, now or later.
  virtual Result<decoder::BranchStore*> process_store(pid_t pid);
  /// Its stores get every record from now on: of software always; of hardware, whose history is as
  /// long as its buffer, if `every_record`, as far as it can. What it says otherwise.
  virtual Result<void> feed_stores(ThreadId thread, bool every_record);
  /// Its store hears of the kernel's branches, if it wants them. The errno.
  virtual Result<void> see_kernel(ThreadId thread);
  /// Its store hears of context switches. The errno.
  virtual Result<void> mark_switches(ThreadId thread);
  /// Lets others listen on a socket file. Error kUnsupported, or the errno.
  virtual Result<void> listen_for_tails(const TailListening& options);
  /// One line for people: the source in use and why. For `monitor source` and `monitor stats`.
  virtual std::string describe() = 0;
};

class Target {
 public:
  virtual ~Target() = default;

  // Optional abilities; null where absent.
  virtual ProcessControl* process_control() = 0;
  virtual RunControl* run_control() = 0;
  virtual BreakpointControl* breakpoint_control() = 0;
  virtual BranchTracing* branch_tracing() = 0;
  virtual PastControl* past_control() { return nullptr; }

  [[nodiscard]] virtual std::vector<pid_t> processes() const = 0;
  /// Threads of one process, oldest first; the empty list for an unknown process.
  [[nodiscard]] virtual std::vector<ThreadInfo> threads(pid_t pid) const = 0;
  /// As threads(), only the ids; for targets that can tell them without reading names.
  [[nodiscard]] virtual std::vector<ThreadId> thread_ids(pid_t pid) const;
  [[nodiscard]] virtual bool alive(ThreadId thread) const = 0;
  /// CPU the thread last ran on; -1 = unknown. Asked at every stop.
  [[nodiscard]] virtual int core(ThreadId thread) const;
  /// True when the process was taken over rather than started.
  [[nodiscard]] virtual bool was_attached(pid_t pid) const = 0;
  /// Its files are to be seen as it sees them itself, for as long as it lives.
  [[nodiscard]] virtual bool has_own_files(pid_t pid) const {
    (void)pid;
    return true;
  }
  /// The event that a stopped thread last reported or would report; kStopped when it has none.
  [[nodiscard]] virtual tracee::StopEvent last_stop(ThreadId thread) const = 0;

  /// Valid until the process execs or ends.
  virtual Result<const arch::x86::GdbRegisterSet*> register_set(pid_t pid) = 0;
  virtual Result<arch::x86::RawRegisters> read_registers(ThreadId thread) = 0;
  /// Which of what read_registers() returns is known; all of it unless the thread is in the past.
  [[nodiscard]] virtual KnownRegisters known_registers(ThreadId thread) {
    (void)thread;
    return {};
  }
  virtual Result<void> write_registers(ThreadId thread, const arch::x86::RawRegisters& regs) = 0;

  /// Reads up to out.size() bytes; returns how many were readable from `address` on (0 = none).
  /// Breakpoints do not show.
  virtual Result<std::size_t> read_memory(pid_t pid, TraceeAddr address,
                                          std::span<std::uint8_t> out) = 0;
  /// All or an error.
  virtual Result<void> write_memory(pid_t pid, TraceeAddr address,
                                    std::span<const std::uint8_t> data) = 0;

  virtual Result<std::vector<std::uint8_t>> auxv(pid_t pid) = 0;
  virtual Result<std::string> exec_file(pid_t pid) = 0;
  /// Where the client finds what the program had at this path.
  virtual std::string file_path(const std::string& path) { return path; }
  virtual Result<LinkMapList> link_maps(pid_t pid) = 0;
  /// In the layout of the program's own width (128 bytes).
  virtual Result<std::vector<std::uint8_t>> siginfo(ThreadId thread) = 0;
  virtual Result<void> set_siginfo(ThreadId thread, std::span<const std::uint8_t> bytes) = 0;

  /// Names of symbols that the target wants looked up in the program's symbol tables, which only
  /// the client has (libthread_db needs them). Asked when symbols may have become available, and
  /// again after each symbols_resolved until it returns no name that was not asked before. When
  /// the client does not know the first name the others are not asked.
  virtual std::vector<std::string> wanted_symbols(pid_t pid) = 0;
  /// The answers; names the client does not know are absent.
  virtual void symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) = 0;
  /// Folders in which libthread_db is looked for; empty = the built-in ones.
  virtual void set_thread_db_search_path(const std::string& path);
  /// Address of a thread-local variable. Error kUnsupported without libthread_db.
  virtual Result<TraceeAddr> tls_address(ThreadId thread, std::uint64_t offset,
                                         TraceeAddr link_map) = 0;
};

}  // namespace backtrail::server
