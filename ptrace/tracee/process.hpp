// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One traced process: its threads, its memory, and the debugger's breakpoints in it.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "arch/cpu/debug_registers.hpp"
#include "arch/cpu/gdb_registers.hpp"
#include "decoder/trace/code_reader.hpp"
#include "ptrace/os/seccomp_filter.hpp"
#include "ptrace/tracee/address_limit.hpp"
#include "ptrace/tracee/breakpoint.hpp"
#include "ptrace/tracee/own_affinity.hpp"
#include "ptrace/tracee/program_view.hpp"
#include "ptrace/tracee/restartable_sections.hpp"
#include "ptrace/tracee/thread.hpp"
#include "ptrace/tracee/trap_action.hpp"

namespace backtrail::tracee::cache {
class CacheSpace;
class CodeWriters;
struct InheritedCode;
class SteppedMemory;
}  // namespace backtrail::tracee::cache

namespace backtrail::tracee {

class Process;

/// Told of a process's life, for the layer that attaches data to it. All calls come from the
/// tracing thread.
class ProcessObserver {
 public:
  ProcessObserver() = default;
  ProcessObserver(const ProcessObserver&) = delete;
  ProcessObserver& operator=(const ProcessObserver&) = delete;
  virtual ~ProcessObserver() = default;

  virtual void on_begin(Process& process) = 0;
  /// `child` was forked by `parent`.
  virtual void on_inherit(Process& parent, Process& child) = 0;
  /// The process has executed another program.
  virtual void on_new_image(Process& process) = 0;
  /// The process has ended or was let go. Its threads are about to be destroyed.
  virtual void on_end(Process& process) = 0;
};

class Process final : public decoder::CodeReader {
 public:
  /// `tid` is any live thread of the process in a ptrace stop. `observer` must outlive the process.
  static Result<std::unique_ptr<Process>> open(pid_t pid, pid_t tid, bool attached,
                                               ProcessObserver& observer);
  /// Opens the process `pid` that `parent` has forked. It has not executed another program, and is
  /// in its first stop.
  static Result<std::unique_ptr<Process>> open_child(pid_t pid, const Process& parent);
  ~Process() override;
  /// Tells the observer and destroys the threads, once. The object may be needed for longer.
  void end_threads();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool attached() const { return attached_; }
  /// Returns true unless every thread is stopped (Thread::stopped()).
  [[nodiscard]] bool any_not_stopped() const { return not_stopped_ != 0; }
  /// For Thread: `more` threads are not stopped now.
  void note_not_stopped(int more) { not_stopped_ += more; }

  // CodeReader. Masks breakpoints.
  [[nodiscard]] arch::Isa isa() const override { return view_.isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    return view_.read_code(address, out);
  }

  /// Bytes of the instruction at which a thread is stopped; fewer where memory ends. A second call
  /// for the same stop reads no memory: the engine forgets them when the stop has been handled.
  std::span<const std::uint8_t> insn_bytes(TraceeAddr pc) { return view_.insn_bytes(pc); }
  void forget_insn_bytes() { view_.forget_insn_bytes(); }
  void note_insn_bytes(TraceeAddr pc, std::span<const std::uint8_t> bytes) {
    view_.note_insn_bytes(pc, bytes);
  }

  std::size_t read_memory(TraceeAddr address, std::span<std::uint8_t> out) {
    return view_.read(address, out);
  }
  /// Writes memory and tells the branch sources about changed code.
  Result<void> write_memory(TraceeAddr address, std::span<const std::uint8_t> data);
  /// Writes memory without telling the sources, which would decode everything recorded so far. For
  /// bytes that are not code, or that are restored before they could run.
  Result<void> write_data(TraceeAddr address, std::span<const std::uint8_t> data) {
    return view_.write(address, data);
  }

  [[nodiscard]] BreakpointTable& breakpoints() { return view_.breakpoints(); }
  [[nodiscard]] decoder::InsnCache& insns() { return view_.insns(); }
  /// Returns what gdb is told of the registers; one description serves all processes of an ISA.
  [[nodiscard]] const arch::cpu::GdbRegisterSet& register_set() const;

  /// Errors as DebugRegisters::insert().
  Result<void> insert_debug(TraceeAddr address, std::uint64_t length,
                            arch::cpu::DebugAccess access);
  Result<void> remove_debug(TraceeAddr address, std::uint64_t length,
                            arch::cpu::DebugAccess access);
  void clear_debug();
  [[nodiscard]] const arch::cpu::DebugRegisters& debug_registers() const {
    return debug_.registers;
  }
  /// Changes whenever debug_registers() changes; 0 = never used.
  [[nodiscard]] std::uint64_t debug_generation() const { return debug_.generation; }

  // Threads, oldest first.
  [[nodiscard]] const std::vector<std::unique_ptr<Thread>>& threads() const { return threads_; }
  [[nodiscard]] Thread* find(pid_t tid);
  Thread& add_thread(pid_t tid);
  /// Number of threads the program has had, including those that have ended.
  [[nodiscard]] std::size_t threads_ever() const { return threads_ever_; }
  void remove_thread(pid_t tid);
  /// Returns any thread in a ptrace stop; null if there is none.
  [[nodiscard]] Thread* any_stopped();

  /// Call after an exec: reopens the memory, so that the new program's is read and written. The old
  /// memory may be its parent's (vfork).
  Result<void> renew_memory();
  /// Drops all that is known of the old program, after an exec by `survivor`.
  void become_new_image(Thread& survivor);
  /// Initialises a forked child from its parent: breakpoints in its memory, filters and limits are
  /// copied, and CodeWriters is shared.
  void inherit_from(Process& parent);

  /// System calls that the client wants reported; nullopt: none; empty: all.
  std::optional<std::set<std::int64_t>> catch_syscalls;
  OwnAffinity own_affinity;
  /// For sources that step.
  TrapAction trap_action;
  RestartableSections restartable;
  /// Filters that a thread of this process, or of one it was forked from, was seen to install.
  SeccompFilters filters;
  /// The kernel has confirmed that there are no others.
  bool filters_checked = false;
  /// Where the program lies in memory: the same for as long as it is not replaced by an exec.
  struct Placement {
    bool fixed = false;                ///< cache::fix_addresses() was called.
    std::optional<bool> random{};      ///< Its addresses were random. nullopt: not asked yet.
    std::optional<TraceeAddr> vdso{};  ///< nullopt: not known yet.
    /// Result of cache::repeated_place(). nullopt: not asked yet.
    std::optional<std::optional<std::uint64_t>> repeated{};
  };
  Placement placement;
  AddressLimit address_limit;
  /// Shared by the recorded threads while they run translated code. Null until one does.
  std::shared_ptr<cache::CacheSpace> cache_space;
  /// Shared by the threads that are stepped. Null until one tells of its memory.
  std::shared_ptr<cache::SteppedMemory> stepped_memory;
  /// Set for a forked child until one of its threads runs; null if nothing is known.
  std::shared_ptr<const cache::InheritedCode> inherited_code;
  /// Shared with the processes that this one descends from and with its children. Set by the
  /// observer.
  std::shared_ptr<cache::CodeWriters> code_writers;
  /// How the process itself ended, while others that share its memory live on (Thread::group()).
  std::optional<StopEvent> end;
  /// The client has asked for its end.
  bool client_kills = false;
  /// A forked child that the client has not been told about.
  bool hidden = false;
  /// Requests of the process itself.
  struct Asked {
    /// No core is to be written of it (PR_SET_DUMPABLE). Noted by the source `cache` only.
    bool not_to_be_dumped = false;
    /// The server, its parent, is to trace it.
    bool to_be_traced = false;
  };
  Asked asked;
  /// Report StopKind::kTraceRequest for its threads.
  bool reports_tracing = false;
  /// The process whose memory it uses, as a vfork's child that the client knows, until it executes
  /// another program or ends; 0: it has its own.
  pid_t memory_owner = 0;
  /// Breakpoints are lifted while a vfork child shares the memory.
  bool lifted_for_vfork = false;

 private:
  Process(pid_t pid, bool attached, ProcessMemory memory, ProcessObserver& observer);
  Result<void> identify(pid_t tid);

  pid_t pid_;
  ProcessObserver& observer_;
  bool attached_;
  bool ended_ = false;  ///< The observer was told.
  ProgramView view_;
  struct Debug {
    arch::cpu::DebugRegisters registers;
    std::uint64_t generation = 0;
  };
  Debug debug_;
  int not_stopped_ = 0;  ///< Number of threads. They count themselves, so they must end first.
  std::vector<std::unique_ptr<Thread>> threads_;
  std::size_t threads_ever_ = 0;
};

}  // namespace backtrail::tracee
