// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A target without processes: the test sets memory, registers and events.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/target/target.hpp"

namespace backtrail::test {

/// The optional abilities of a FakeTarget.
struct FakeAbilities {
  bool process_control = true;
  bool run_control = true;
  bool breakpoint_control = true;
  bool branch_tracing = true;
  bool past_control = false;
};

struct FakeThread {
  std::string name;
  int core = -1;
  std::vector<std::uint8_t> handle;
  arch::x86::RawRegisters registers;
  std::vector<std::uint8_t> siginfo = std::vector<std::uint8_t>(128);
  tracee::StopEvent last_stop;
  bool running = false;
  std::optional<tracee::TraceConfig> trace;
};

struct FakeProcess {
  bool attached = false;
  std::map<pid_t, FakeThread> threads;
  std::map<std::uint64_t, std::vector<std::uint8_t>> memory;  ///< Segments by address.
  std::string exec_file = "/bin/fake";
  std::vector<std::uint8_t> auxv;
  std::optional<server::LinkMapList> link_maps;
};

/// Implements every interface. Records what a session does, and answers its requests from the
/// public members. All-stop: a posted event stops everything, as the Target interface requires.
class FakeTarget : public server::Target,
                   public server::ProcessControl,
                   public server::RunControl,
                   public server::BreakpointControl,
                   public server::BranchTracing,
                   public server::PastControl {
 public:
  using ThreadId = server::ThreadId;

  explicit FakeTarget(FakeAbilities abilities = {});

  /// Adds a stopped process with one thread at 0x1000. 4 KiB of memory begin there; each byte is
  /// its offset's low 8 bits.
  ThreadId add_process(pid_t pid);
  ThreadId add_thread(pid_t pid, pid_t tid);
  FakeThread& thread(ThreadId id) { return all.at(id.pid).threads.at(id.tid); }

  /// Gives the CPU further registers. @param xcr0 As on an Intel CPU; 7: AVX.
  void set_xcr0(std::uint64_t xcr0) {
    registers_ = arch::x86::GdbRegisterSet{arch::Isa::kAmd64, arch::x86::intel_xsave_layout(xcr0)};
  }

  /// Queues an event as if from the kernel.
  void post(tracee::StopEvent event);

  std::map<pid_t, FakeProcess> all;
  std::deque<tracee::StopEvent> events;
  bool non_stop = false;
  std::set<ThreadId> ended;  ///< Threads of processes whose ends are not told yet.
  bool recorded = false;     ///< A recording, of which nothing can be changed.

  // Actions of the session.
  std::vector<std::vector<server::ThreadResume>> resumes;
  int interrupts = 0;
  int stop_alls = 0;
  std::map<ThreadId, bool> known_stops;  ///< set_stop_known().
  std::set<int> passed_signals;
  std::set<int> programmed_signals;
  std::map<pid_t, std::optional<std::set<std::int64_t>>> caught_syscalls;
  std::optional<bool> thread_events;
  std::map<ThreadId, tracee::ThreadOptions> thread_options;
  std::vector<ThreadId> untold_ends;  ///< Threads.
  struct ReportedEvents {
    bool fork = false;
    bool vfork = false;
    bool exec = false;
  };
  std::optional<ReportedEvents> reported_events;
  std::vector<tracee::BreakpointSpec> breakpoints;
  std::vector<tracee::LaunchSpec> launches;
  std::vector<pid_t> detached;
  std::vector<pid_t> killed;
  std::vector<std::map<std::string, TraceeAddr>> resolved;

  // Results for the session.
  std::optional<Error> launch_error;
  std::optional<Error> attach_error;
  std::optional<Error> insert_error;
  std::optional<Error> enable_error;
  std::map<server::TraceRead, Result<server::TraceDocument>> traces;
  int trace_reads = 0;
  /// Answers of wanted_symbols(), one for each call.
  std::vector<std::vector<std::string>> wanted;
  std::optional<TraceeAddr> tls;
  std::string thread_db_search_path;

  // Threads in the past.
  /// Known registers of threads in the past, by number.
  std::map<ThreadId, std::vector<bool>> known;
  std::vector<std::uint8_t> past_memory;  ///< Memory that these threads see at any address.
  struct Back {
    ThreadId thread;
    tracee::ResumeKind how;
  };
  std::vector<Back> moved_back;
  ThreadId preferred;
  bool lives = false;  ///< Threads run on at the end of their history.

  // Target
  server::ProcessControl* process_control() override;
  server::RunControl* run_control() override;
  server::BreakpointControl* breakpoint_control() override;
  server::BranchTracing* branch_tracing() override;
  server::PastControl* past_control() override;
  server::KnownRegisters known_registers(ThreadId thread) override;
  [[nodiscard]] std::vector<pid_t> processes() const override;
  [[nodiscard]] std::vector<server::ThreadInfo> threads(pid_t pid) const override;
  [[nodiscard]] bool alive(ThreadId thread) const override;
  [[nodiscard]] bool has_ended(ThreadId thread) const override { return ended.contains(thread); }
  [[nodiscard]] bool was_attached(pid_t pid) const override;
  [[nodiscard]] tracee::StopEvent last_stop(ThreadId thread) const override;
  Result<const arch::x86::GdbRegisterSet*> register_set(pid_t pid) override;
  Result<arch::x86::RawRegisters> read_registers(ThreadId thread) override;
  Result<void> write_registers(ThreadId thread, const arch::x86::RawRegisters& regs) override;
  Result<std::size_t> read_memory(pid_t pid, TraceeAddr address,
                                  std::span<std::uint8_t> out) override;
  Result<void> write_memory(pid_t pid, TraceeAddr address,
                            std::span<const std::uint8_t> data) override;
  Result<std::vector<std::uint8_t>> auxv(pid_t pid) override;
  Result<std::string> exec_file(pid_t pid) override;
  Result<server::LinkMapList> link_maps(pid_t pid) override;
  Result<std::vector<std::uint8_t>> siginfo(ThreadId thread) override;
  Result<void> set_siginfo(ThreadId thread, std::span<const std::uint8_t> bytes) override;
  std::vector<std::string> wanted_symbols(pid_t pid) override;
  void symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) override;
  void set_thread_db_search_path(const std::string& path) override { thread_db_search_path = path; }
  Result<TraceeAddr> tls_address(ThreadId thread, std::uint64_t offset,
                                 TraceeAddr link_map) override;

  // ProcessControl
  Result<pid_t> launch(const tracee::LaunchSpec& spec) override;
  Result<pid_t> attach(pid_t pid) override;
  Result<void> detach(pid_t pid) override;
  Result<void> kill(pid_t pid) override;

  // RunControl
  void set_non_stop(bool on) override { non_stop = on; }
  Result<void> resume(std::span<const server::ThreadResume> orders) override;
  void interrupt() override { ++interrupts; }
  void pump(int /*input_fd*/) override {}
  std::optional<tracee::StopEvent> take_event() override;
  [[nodiscard]] bool running() const override;
  [[nodiscard]] bool is_running(ThreadId thread) const override;
  void stop_all() override;
  void set_stop_known(ThreadId thread, bool is_known) override { known_stops[thread] = is_known; }
  void set_pass_signals(std::set<int> signals) override { passed_signals = std::move(signals); }
  void set_program_signals(std::set<int> signals) override {
    programmed_signals = std::move(signals);
  }
  Result<void> set_catch_syscalls(pid_t pid,
                                  std::optional<std::set<std::int64_t>> numbers) override;
  void set_thread_events(bool on) override { thread_events = on; }
  void set_thread_options(ThreadId thread, tracee::ThreadOptions options) override {
    thread_options[thread] = options;
  }
  [[nodiscard]] std::vector<ThreadId> untold_thread_ends() const override { return untold_ends; }
  void update_thread_list() override { untold_ends.clear(); }
  void set_reported_events(bool fork, bool vfork, bool exec) override;

  // BreakpointControl
  Result<void> insert(pid_t pid, tracee::BreakpointSpec spec) override;
  Result<void> remove(pid_t pid, const tracee::BreakpointSpec& spec) override;

  // BranchTracing
  Result<void> enable(ThreadId thread, tracee::TraceConfig config) override;
  Result<void> disable(ThreadId thread) override;
  std::optional<tracee::TraceConfig> config(ThreadId thread) override;
  Result<server::TraceDocument> read(ThreadId thread, server::TraceRead what) override;
  std::string describe() override { return "step: chosen by the test"; }

  // PastControl
  [[nodiscard]] bool in_past(ThreadId thread) const override { return known.contains(thread); }
  Result<void> go_back(ThreadId thread, tracee::ResumeKind how) override;
  void prefer(ThreadId thread) override { preferred = thread; }
  [[nodiscard]] bool lives_on() const override { return lives; }
  using Target::read_memory;
  std::size_t read_memory(ThreadId thread, TraceeAddr address,
                          std::span<std::uint8_t> out) override;

 private:
  [[nodiscard]] FakeThread* find(ThreadId thread);
  [[nodiscard]] const FakeThread* find(ThreadId thread) const;

  FakeAbilities abilities_;
  arch::x86::GdbRegisterSet registers_;
};

}  // namespace backtrail::test
