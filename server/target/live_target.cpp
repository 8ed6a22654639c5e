// SPDX-License-Identifier: Apache-2.0
#include "server/target/live_target.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "arch/cpu/compat_siginfo.hpp"
#include "decoder/pt/pt_decoder.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/last_cpu.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/probe.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "server/target/live_past.hpp"
#include "server/target/live_symbols.hpp"
#include "server/target/record_listeners.hpp"

namespace backtrail::server {
namespace {

using tracee::Engine;
using tracee::Process;
using tracee::ProcFs;
using tracee::Thread;

std::uint64_t as_detail(pid_t id) {
  return static_cast<std::uint64_t>(id);
}

/// Implements every interface of Target over one Engine, which decides how threads run and stop.
class LiveTarget final : public Target,
                         public ProcessControl,
                         public RunControl,
                         public BreakpointControl,
                         public BranchTracing {
 public:
  LiveTarget(tracee::SourceKind source, bool from_start, tracee::ValueDepth values)
      : engine_{source}, past_{engine_, values} {
    engine_.set_on_recorded_unasked([this](Thread& thread) { listeners_.follow_unasked(thread); });
    if (from_start) engine_.set_from_start(past_.history_config());
  }
  LiveTarget(const LiveTarget&) = delete;
  LiveTarget& operator=(const LiveTarget&) = delete;
  ~LiveTarget() override { listeners_.finish(); }

  ProcessControl* process_control() override { return this; }
  RunControl* run_control() override { return this; }
  BreakpointControl* breakpoint_control() override { return this; }
  BranchTracing* branch_tracing() override { return this; }
  PastControl* past_control() override { return &past_; }

  // ProcessControl
  Result<pid_t> launch(const tracee::LaunchSpec& spec) override { return engine_.launch(spec); }
  Result<pid_t> attach(pid_t pid) override { return engine_.attach(pid); }
  Result<void> detach(pid_t pid) override {
    forget(pid);
    return engine_.detach(pid);
  }
  Result<void> kill(pid_t pid) override {
    forget(pid);
    return engine_.kill(pid);
  }

  // RunControl
  void set_non_stop(bool on) override { engine_.set_non_stop(on); }
  Result<void> resume(std::span<const ThreadResume> orders) override {
    if (past_.resume(orders)) return {};
    infos_.clear();
    std::vector<std::pair<ThreadId, tracee::ResumeAction>> plain;
    plain.reserve(orders.size());
    for (const ThreadResume& order : orders) plain.emplace_back(order.thread, order.action);
    return engine_.resume(plain);
  }
  void interrupt() override { engine_.interrupt(); }
  void pump(int input_fd) override {
    listeners_.serve_tails();
    engine_.pump(input_fd);
    listeners_.serve_tails();
    listeners_.follow_stores();
  }
  [[nodiscard]] bool needs_pump() override { return !engine_.rests() || listeners_.need_service(); }
  [[nodiscard]] int event_fd() const override { return listeners_.event_fd(); }
  [[nodiscard]] int side_fd() const override { return listeners_.side_fd(); }
  std::optional<tracee::StopEvent> take_event() override {
    if (auto moved = past_.take_event()) return moved;
    auto event = engine_.take_event();
    if (event) listeners_.hand_on();
    if (event && (event->kind == tracee::StopKind::kExec ||
                  event->kind == tracee::StopKind::kProcessExited ||
                  event->kind == tracee::StopKind::kProcessSignalled)) {
      forget(event->thread.pid);
    }
    return event;
  }
  std::optional<std::string> take_message() override { return past_.take_message(); }
  [[nodiscard]] bool running() const override { return engine_.running(); }
  [[nodiscard]] bool is_running(ThreadId thread) const override {
    return engine_.is_running(thread);
  }
  void stop_all() override {
    engine_.forget_interrupt();  // it was another client's
    engine_.stop_all();
  }
  void set_stop_known(ThreadId thread, bool known) override {
    engine_.set_stop_known(thread, known);
  }
  void set_pass_signals(std::set<int> signals) override {
    engine_.set_pass_signals(std::move(signals));
  }
  void set_program_signals(std::set<int> signals) override {
    engine_.set_program_signals(std::move(signals));
  }
  Result<void> set_catch_syscalls(pid_t pid,
                                  std::optional<std::set<std::int64_t>> numbers) override {
    BT_TRY(Process * process, find(pid, "catch system calls"));
    process->catch_syscalls = std::move(numbers);
    return {};
  }
  void set_thread_events(bool on) override { engine_.report_threads(on); }
  void set_thread_options(ThreadId thread, tracee::ThreadOptions options) override {
    engine_.set_options(thread, options);
  }
  [[nodiscard]] std::vector<ThreadId> untold_thread_ends() const override {
    return engine_.held_ends();
  }
  void update_thread_list() override { engine_.update_thread_list(); }
  void set_reported_events(bool fork, bool vfork, bool exec) override {
    tracee::ReportedEvents reported = engine_.reported();
    reported.fork = fork;
    reported.vfork = vfork;
    reported.exec = exec;
    engine_.set_reported(reported);
  }

  // BreakpointControl
  Result<void> insert(pid_t pid, tracee::BreakpointSpec spec) override {
    BT_CHECKED(engine_.insert(pid, spec));
    past_.insert(pid, spec);
    return {};
  }
  Result<void> remove(pid_t pid, const tracee::BreakpointSpec& spec) override {
    past_.remove(pid, spec);
    return engine_.remove(pid, spec);
  }

  // BranchTracing
  Result<void> enable(ThreadId thread, tracee::TraceConfig config) override {
    past_.drop();
    BT_CHECKED(engine_.enable_trace(thread, config));
    listeners_.follow(thread);
    return {};
  }
  [[nodiscard]] std::string why_not_enabled(const Error& error) const override {
    return tracee::why_not_recorded(engine_.source(), error);
  }
  Result<void> disable(ThreadId thread) override {
    if (!past_.any_in_past(thread.pid)) past_.drop();
    return engine_.disable_trace(thread);
  }
  Result<void> keep_history(bool on) override { return past_.keep_history(on); }
  [[nodiscard]] std::string why_no_history(const Error& error) const override {
    if (error.is(TraceErrc::kBusy)) return std::string{past_.why_unchangeable()};
    return tracee::why_not_recorded(engine_.source(), error);
  }
  std::string describe_history() override { return past_.describe_history(); }
  std::optional<tracee::TraceConfig> config(ThreadId thread) override {
    Thread* found = engine_.find(thread);
    if (found == nullptr || !found->trace() || !found->trace()->asked_for()) return std::nullopt;
    return found->trace()->config();
  }
  Result<TraceDocument> read(ThreadId thread, TraceRead what) override;
  Result<decoder::BranchStore*> store(ThreadId thread) override;
  Result<decoder::BranchStore*> process_store(pid_t pid) override;
  Result<void> feed_stores(ThreadId thread, bool every_record) override {
    return listeners_.feed_stores(thread, every_record);
  }
  Result<void> see_kernel(ThreadId thread) override { return engine_.see_kernel(thread); }
  Result<void> mark_switches(ThreadId thread) override { return engine_.mark_switches(thread); }
  Result<void> listen_for_tails(const TailListening& options) override {
    return listeners_.listen(options);
  }
  std::string describe() override;

  // Target
  [[nodiscard]] std::vector<pid_t> processes() const override {
    std::vector<pid_t> pids;
    for (const Process* process : engine_.processes()) pids.push_back(process->pid());
    for (const auto* end : engine_.untold_ends()) pids.push_back(end->event.thread.pid);
    return pids;
  }
  [[nodiscard]] std::vector<ThreadInfo> threads(pid_t pid) const override;
  [[nodiscard]] std::vector<ThreadId> thread_ids(pid_t pid) const override;
  [[nodiscard]] bool alive(ThreadId thread) const override {
    if (const Thread* found = engine_.find(thread)) return !found->control().zombie;
    const tracee::UntoldEnd* end = untold_end(thread.pid);
    return end != nullptr && std::ranges::find(end->threads, thread) != end->threads.end();
  }
  [[nodiscard]] bool has_ended(ThreadId thread) const override {
    const Thread* found = engine_.find(thread);
    return found != nullptr ? found->stopped() && found->is_gone() : alive(thread);
  }
  [[nodiscard]] int core(ThreadId thread) const override { return last_cpu_.of(thread.tid); }
  [[nodiscard]] bool was_attached(pid_t pid) const override {
    if (const Process* process = engine_.find(pid)) return process->attached();
    const tracee::UntoldEnd* end = untold_end(pid);
    return end != nullptr && end->attached;
  }
  [[nodiscard]] tracee::StopEvent last_stop(ThreadId thread) const override;

  Result<const arch::cpu::GdbRegisterSet*> register_set(pid_t pid) override {
    BT_TRY(const Process* process, find(pid, "register set"));
    return &process->register_set();
  }
  Result<arch::cpu::RawRegisters> read_registers(ThreadId thread) override {
    BT_TRY(Thread * found, find(thread, "read registers"));
    BT_TRY(arch::cpu::RawRegisters registers, found->registers());
    if (past_.in_past(thread)) past_.read_registers(thread, registers);
    return registers;
  }
  Result<arch::cpu::RawRegisters> read_general_registers(ThreadId thread) override {
    if (past_.in_past(thread)) return read_registers(thread);
    BT_TRY(Thread * found, find(thread, "read registers"));
    arch::cpu::RawRegisters registers;
    BT_TRY(registers.user, found->user_regs());
    return registers;
  }
  [[nodiscard]] KnownRegisters known_registers(ThreadId thread) override {
    if (!past_.in_past(thread)) return {};
    arch::cpu::RawRegisters registers;
    if (Thread* found = engine_.find(thread)) {
      registers = found->registers().value_or(arch::cpu::RawRegisters{});
    }
    return KnownRegisters{past_.read_registers(thread, registers)};
  }
  Result<void> write_registers(ThreadId thread, const arch::cpu::RawRegisters& regs) override {
    BT_TRY(Thread * found, find(thread, "write registers"));
    if (past_.in_past(thread)) return fail(errno_error(EROFS, "write registers of the past"));
    past_.note_change(thread);
    return found->set_registers(regs);
  }
  Result<std::size_t> read_memory(pid_t pid, TraceeAddr address,
                                  std::span<std::uint8_t> out) override {
    BT_TRY(Process * process, find(pid, "read memory"));
    return process->read_memory(address, out);
  }
  Result<void> write_memory(pid_t pid, TraceeAddr address,
                            std::span<const std::uint8_t> data) override {
    BT_TRY(Process * process, find(pid, "write memory"));
    if (past_.any_in_past(pid)) return fail(errno_error(EROFS, "write memory of the past"));
    past_.note_change(pid);
    return process->write_memory(address, data);
  }
  Result<std::vector<std::uint8_t>> auxv(pid_t pid) override {
    BT_TRY(const pid_t tid, some_task(pid));
    return ProcFs{}.auxv(tid);
  }
  Result<std::string> exec_file(pid_t pid) override {
    BT_TRY(const pid_t tid, some_task(pid));
    return ProcFs{}.program_path(tid);
  }
  Result<LinkMapList> link_maps(pid_t pid) override;
  Result<std::vector<std::uint8_t>> siginfo(ThreadId thread) override;
  Result<void> set_siginfo(ThreadId thread, std::span<const std::uint8_t> bytes) override;
  std::vector<std::string> wanted_symbols(pid_t pid) override {
    Process* process = engine_.find(pid);
    return process == nullptr ? std::vector<std::string>{} : symbols_.wanted(*process);
  }
  void symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) override {
    if (Process* process = engine_.find(pid)) symbols_.resolved(*process, symbols);
  }
  void set_thread_db_search_path(const std::string& path) override {
    symbols_.set_search_path(path);
  }
  Result<TraceeAddr> tls_address(ThreadId thread, std::uint64_t offset,
                                 TraceeAddr link_map) override {
    BT_CHECKED(find(thread, "find thread-local storage"));
    return symbols_.tls_address(thread, offset, link_map);
  }

 private:
  /// Forgets what is known of a process that has ended or executed another program.
  void forget(pid_t pid) {
    infos_.clear();
    symbols_.forget(pid);
    past_.forget(pid);
  }
  /// Returns null if the client knows how the process ended, or it has not ended.
  [[nodiscard]] const tracee::UntoldEnd* untold_end(pid_t pid) const {
    const auto ends = engine_.untold_ends();
    const auto found = std::ranges::find_if(
        ends, [=](const tracee::UntoldEnd* end) { return end->event.thread.pid == pid; });
    return found == ends.end() ? nullptr : *found;
  }
  Result<Process*> find(pid_t pid, const char* operation) const {
    Process* process = engine_.find(pid);
    if (process == nullptr) return fail(TraceErrc::kNotFound, operation, as_detail(pid));
    return process;
  }
  Result<Thread*> find(ThreadId id, const char* operation) const {
    Thread* thread = engine_.find(id);
    if (thread == nullptr) return fail(TraceErrc::kNotFound, operation, as_detail(id.tid));
    return thread;
  }
  Result<tracee::ThreadTrace*> trace_of(ThreadId id, const char* operation) const {
    BT_TRY(Thread * thread, find(id, operation));
    if (!thread->trace()) return fail(TraceErrc::kNotEnabled, operation, as_detail(id.tid));
    return thread->trace().get();
  }
  /// Returns a thread whose files in /proc represent the process; the leader may have ended.
  Result<pid_t> some_task(pid_t pid) const {
    BT_TRY(Process * process, find(pid, "process"));
    Thread* thread = process->any_stopped();
    return thread == nullptr ? pid : thread->tid();
  }

  RecordListeners listeners_{engine_};  // outlives the traces that it listens to
  Engine engine_;
  LivePast past_;
  mutable LiveSymbols symbols_;
  mutable tracee::LastCpu last_cpu_;
  mutable std::unordered_map<pid_t, ThreadInfo> infos_;  ///< By tid, while nothing runs.
};

std::vector<ThreadId> LiveTarget::thread_ids(pid_t pid) const {
  std::vector<ThreadId> ids;
  const Process* process = engine_.find(pid);
  if (process == nullptr) {
    const tracee::UntoldEnd* end = untold_end(pid);
    return end == nullptr ? ids : end->threads;
  }
  if (process->hidden) return ids;
  for (const auto& thread : process->threads()) {
    // A thread being created counts: if gdb saw every thread stopped, it would remove its
    // breakpoints.
    if (!thread->control().zombie && !thread->control().untold) ids.push_back(thread->id());
  }
  return ids;
}

std::vector<ThreadInfo> LiveTarget::threads(pid_t pid) const {
  // A thread's name and CPU do not change while the client has all threads stopped.
  if (engine_.running()) infos_.clear();
  std::vector<ThreadInfo> infos;
  for (const ThreadId id : thread_ids(pid)) {
    ThreadInfo& info = infos_[id.tid];
    if (info.id != id) {
      const auto stat = ProcFs{}.task_stat(id.tid, id.tid);
      info = {.id = id,
              .name = stat ? stat->comm : "",
              .core = stat ? stat->processor : -1,
              .handle = {}};
    }
    // libthread_db reads the process, which may have ended.
    if (info.handle.empty() && engine_.find(id) != nullptr) info.handle = symbols_.handle(id);
    infos.push_back(info);
  }
  return infos;
}

tracee::StopEvent LiveTarget::last_stop(ThreadId thread) const {
  if (past_.in_past(thread)) return {.thread = thread, .kind = tracee::StopKind::kStopped};
  const Thread* found = engine_.find(thread);
  if (found == nullptr) return {.thread = thread, .kind = tracee::StopKind::kStopped};
  const auto& control = found->control();
  tracee::StopEvent stop = control.pending ? *control.pending : control.last_stop;
  if (stop.thread.tid == 0) stop = {.thread = thread, .kind = tracee::StopKind::kStopped};
  return stop;
}

Result<TraceDocument> LiveTarget::read(ThreadId id, TraceRead what) {
  BT_TRY(Thread * thread, find(id, "read trace"));
  if (!thread->trace() || !thread->trace()->asked_for()) {
    return fail(TraceErrc::kNotEnabled, "read trace", as_detail(id.tid));
  }
  BT_TRY(const TraceeAddr pc, thread->pc());
  tracee::ThreadTrace& trace = *thread->trace();
  trace.flush();
  if (decoder::PtRawHistory* pt = trace.raw_pt()) {
    if (what == TraceRead::kDelta) return fail(TraceErrc::kUnsupported, "read PT delta");
    if (what == TraceRead::kNew && !pt->changed()) return TraceDocument{PtTrace{}};
    const decoder::CpuIdentity& cpu = tracee::this_machine().cpu;
    PtTrace packets{pt->read_all(), std::nullopt};
    if (decoder::pt_errata_known(cpu)) packets.cpu = cpu;
    return TraceDocument{std::move(packets)};
  }
  if (decoder::PtHistory* pt = trace.pt()) {
    if (what == TraceRead::kDelta) return fail(TraceErrc::kUnsupported, "read PT delta");
    if (what == TraceRead::kNew && !pt->changed(pc)) return TraceDocument{PtTrace{}};
    return TraceDocument{PtTrace{pt->read_all(pc), std::nullopt}};
  }
  decoder::BtsHistory& bts = *trace.bts();
  switch (what) {
    case TraceRead::kAll:
      return TraceDocument{bts.read_all(pc)};
    case TraceRead::kNew:
      return TraceDocument{bts.read_new(pc)};
    case TraceRead::kDelta:
      break;
  }
  BT_TRY(std::vector<decoder::Block> blocks, bts.read_delta(pc));
  return TraceDocument{std::move(blocks)};
}

Result<decoder::BranchStore*> LiveTarget::store(ThreadId id) {
  BT_TRY(tracee::ThreadTrace * trace, trace_of(id, "bts"));
  decoder::BranchStore& store = trace->store();
  trace->flush();
  return &store;
}

Result<decoder::BranchStore*> LiveTarget::process_store(pid_t pid) {
  BT_TRY(Process * process, find(pid, "bts"));
  bool recorded = false;
  for (const auto& thread : process->threads()) {
    if (!thread->trace()) continue;
    recorded = true;
    thread->trace()->flush();
  }
  if (!recorded) return fail(TraceErrc::kNotEnabled, "bts", as_detail(pid));
  return &listeners_.store_of(*process);
}

std::string LiveTarget::describe() {
  std::string text;
  for (const Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (!thread->trace()) continue;
      text += fmt::format("thread {}.{}: {}\n", thread->id().pid, thread->tid(),
                          thread->trace()->source().statistics());
      if (const auto lost = thread->trace()->marks_lost(); lost != 0) {
        text += fmt::format("thread {}.{}: {} scheduling marks lost\n", thread->id().pid,
                            thread->tid(), lost);
      }
    }
  }
  return text.empty() ? "no thread is being recorded\n" : text;
}

Result<LinkMapList> LiveTarget::link_maps(pid_t pid) {
  BT_TRY(Process * process, find(pid, "link maps"));
  BT_TRY(const std::vector<std::uint8_t> vector, auxv(pid));
  const unsigned pointer_bytes = process->isa() == arch::Isa::kAmd64 ? 8 : 4;
  return tracee::read_link_maps(
      [process](TraceeAddr address, std::span<std::uint8_t> out) {
        return process->read_memory(address, out);
      },
      vector, pointer_bytes);
}

Result<std::vector<std::uint8_t>> LiveTarget::siginfo(ThreadId id) {
  if (past_.in_past(id)) return fail(TraceErrc::kNotFound, "siginfo of the past");
  BT_TRY(Thread * thread, find(id, "siginfo"));
  BT_TRY(const siginfo_t info, tracee::request::read_siginfo(thread->tid()));
  arch::cpu::SiginfoBytes bytes = std::bit_cast<arch::cpu::SiginfoBytes>(info);
  if (thread->process().isa() == arch::Isa::kI386) bytes = arch::cpu::siginfo_to_i386(bytes);
  return std::vector<std::uint8_t>{bytes.begin(), bytes.end()};
}

Result<void> LiveTarget::set_siginfo(ThreadId id, std::span<const std::uint8_t> bytes) {
  BT_TRY(Thread * thread, find(id, "write siginfo"));
  arch::cpu::SiginfoBytes native{};
  if (bytes.size() != native.size()) return fail(TraceErrc::kInvalidArgument, "write siginfo");
  std::copy(bytes.begin(), bytes.end(), native.begin());
  if (thread->process().isa() == arch::Isa::kI386) native = arch::cpu::siginfo_from_i386(native);
  return tracee::request::write_siginfo(thread->tid(), std::bit_cast<siginfo_t>(native));
}

}  // namespace

std::unique_ptr<Target> make_live_target(tracee::SourceKind source, bool from_start,
                                         tracee::ValueDepth values) {
  return std::make_unique<LiveTarget>(source, from_start, values);
}

}  // namespace backtrail::server
