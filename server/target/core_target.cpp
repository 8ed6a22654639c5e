// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_target.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "arch/x86/xsave_convert.hpp"
#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "ptrace/core/program_memory.hpp"
#include "ptrace/tracee/thread_db.hpp"
#include "server/rsp/gdb_signals.hpp"
#include "server/target/core_end.hpp"
#include "server/target/core_maps.hpp"
#include "server/target/core_traces.hpp"
#include "server/target/program_past.hpp"

namespace backtrail::server {
namespace {

using tracee::StopEvent;
using tracee::StopKind;

/// The core's memory for libthread_db: reads only.
class ReadOnlyMemory final : public tracee::TraceeMemory {
 public:
  explicit ReadOnlyMemory(tracee::ProgramMemory& memory) : memory_{memory} {}
  std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) override {
    return memory_.read(address, out);
  }
  Result<void> write(TraceeAddr /*address*/, std::span<const std::uint8_t> /*data*/) override {
    return fail(TraceErrc::kUnsupported, "write a dead program's memory");
  }

 private:
  tracee::ProgramMemory& memory_;
};

class CoreTarget final : public Target,
                         public ProcessControl,
                         public RunControl,
                         public BreakpointControl {
 public:
  CoreTarget(std::unique_ptr<OpenCore> open, std::vector<std::string> roots)
      : open_{std::move(open)},
        core_{open_->core},
        roots_{roots},
        memory_{core_, std::move(roots)},
        traces_{core_, memory_},
        registers_{core_registers(core_)} {}

  ProcessControl* process_control() override { return this; }
  RunControl* run_control() override { return this; }
  BreakpointControl* breakpoint_control() override { return this; }
  BranchTracing* branch_tracing() override { return &traces_; }
  PastControl* past_control() override { return &past_; }

  // ProcessControl
  Result<pid_t> launch(const tracee::LaunchSpec& /*spec*/) override { return refuse("start"); }
  Result<pid_t> attach(pid_t /*pid*/) override { return refuse("attach"); }
  Result<void> detach(pid_t /*pid*/) override { return leave(); }
  Result<void> kill(pid_t /*pid*/) override { return leave(); }

  // RunControl
  void set_non_stop(bool /*on*/) override {}
  Result<void> resume(std::span<const ThreadResume> orders) override;
  void interrupt() override {}
  void pump(int /*input_fd*/) override {}
  std::optional<StopEvent> take_event() override;
  std::optional<std::string> take_message() override {
    if (auto message = past_.take_message()) return message;
    return std::exchange(message_, {});
  }
  [[nodiscard]] bool running() const override { return false; }
  [[nodiscard]] bool is_running(ThreadId /*thread*/) const override { return false; }
  void stop_all() override {}
  void set_pass_signals(std::set<int> /*signals*/) override {}
  void set_program_signals(std::set<int> /*signals*/) override {}
  Result<void> set_catch_syscalls(pid_t /*pid*/,
                                  std::optional<std::set<std::int64_t>> /*numbers*/) override {
    return {};
  }
  void set_thread_events(bool /*on*/) override {}
  void set_reported_events(bool /*fork*/, bool /*vfork*/, bool /*exec*/) override {}

  // BreakpointControl. Breakpoints stop moves in the past; after `record btrace` gdb itself stops
  // at them within its trace.
  Result<void> insert(pid_t /*pid*/, tracee::BreakpointSpec spec) override {
    return stops_.insert(spec);
  }
  Result<void> remove(pid_t /*pid*/, const tracee::BreakpointSpec& spec) override {
    stops_.remove(spec);
    return {};
  }

  // Target
  [[nodiscard]] std::vector<pid_t> processes() const override {
    return left_ ? std::vector<pid_t>{} : std::vector<pid_t>{pid()};
  }
  [[nodiscard]] std::vector<ThreadInfo> threads(pid_t pid) const override;
  [[nodiscard]] bool alive(ThreadId thread) const override { return find(thread) != nullptr; }
  [[nodiscard]] int core(ThreadId /*thread*/) const override { return -1; }
  [[nodiscard]] bool was_attached(pid_t /*pid*/) const override { return true; }
  [[nodiscard]] StopEvent last_stop(ThreadId thread) const override;
  [[nodiscard]] bool has_own_files(pid_t /*pid*/) const override { return false; }

  Result<const arch::cpu::GdbRegisterSet*> register_set(pid_t /*pid*/) override {
    return &registers_;
  }
  Result<arch::cpu::RawRegisters> read_registers(ThreadId thread) override;
  KnownRegisters known_registers(ThreadId thread) override;
  Result<void> write_registers(ThreadId /*thread*/,
                               const arch::cpu::RawRegisters& /*regs*/) override {
    return fail(errno_error(EROFS, "write registers"));
  }
  Result<std::size_t> read_memory(pid_t /*pid*/, TraceeAddr address,
                                  std::span<std::uint8_t> out) override {
    return memory_.read(address, out);
  }
  Result<void> write_memory(pid_t /*pid*/, TraceeAddr /*address*/,
                            std::span<const std::uint8_t> /*data*/) override {
    return fail(errno_error(EROFS, "write memory"));
  }
  Result<std::vector<std::uint8_t>> auxv(pid_t /*pid*/) override { return core_.auxv(); }
  Result<std::string> exec_file(pid_t pid) override;
  Result<LinkMapList> link_maps(pid_t pid) override;
  Result<std::vector<std::uint8_t>> siginfo(ThreadId thread) override;
  Result<void> set_siginfo(ThreadId /*thread*/, std::span<const std::uint8_t> /*bytes*/) override {
    return fail(errno_error(EROFS, "write siginfo"));
  }
  std::string file_path(const std::string& path) override;
  std::vector<std::string> wanted_symbols(pid_t /*pid*/) override {
    return thread_db_ ? std::vector<std::string>{} : tracee::ThreadDb::wanted_symbols();
  }
  void symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) override;
  Result<TraceeAddr> tls_address(ThreadId thread, std::uint64_t offset,
                                 TraceeAddr link_map) override {
    if (!thread_db_) return refuse("find thread-local storage");
    return thread_db_->tls_address(thread.tid, offset, link_map);
  }

 private:
  static tl::unexpected<Error> refuse(const char* operation) {
    return fail(TraceErrc::kUnsupported, operation);
  }
  Result<void> leave() {
    left_ = true;
    return {};
  }
  [[nodiscard]] pid_t pid() const {
    const std::uint32_t pid = core_.process().pid;
    return static_cast<pid_t>(pid != 0 ? pid : core_.threads().front().tid);
  }
  [[nodiscard]] unsigned pointer_bytes() const { return core_.isa() == arch::Isa::kAmd64 ? 8 : 4; }
  [[nodiscard]] const decoder::CoreThread* find(ThreadId thread) const {
    return left_ ? nullptr : traces_.find(thread);
  }
  [[nodiscard]] ThreadId id_of(const decoder::CoreThread& thread) const {
    return {pid(), static_cast<pid_t>(thread.tid)};
  }

  std::unique_ptr<OpenCore> open_;
  const decoder::CoreFile& core_;
  std::vector<std::string> roots_;
  tracee::ProgramMemory memory_;
  CoreTraces traces_;
  CoreProcFiles proc_files_{core_};
  arch::cpu::GdbRegisterSet registers_;
  CoreEnd end_{core_, memory_, traces_, registers_};
  PastStops stops_;
  ProgramPast past_{end_, stops_};
  ReadOnlyMemory thread_db_memory_{memory_};
  std::map<std::string, TraceeAddr> symbols_;
  std::unique_ptr<tracee::ThreadDb> thread_db_;
  bool left_ = false;
  std::deque<StopEvent> events_;
  std::optional<std::string> message_;
};

/// Moves a thread that is in the past. If there is none, reports the program's last stop again,
/// with a message that says why.
Result<void> CoreTarget::resume(std::span<const ThreadResume> orders) {
  if (orders.empty() || left_ || past_.go_forward(orders)) return {};
  const int signal = core_.threads().front().signal;
  const auto reason = core_.about().find("reason");
  const bool ran_on = reason != core_.about().end() &&
                      (reason->second == "timeout" || reason->second == "terminated" ||
                       reason->second == "leak-check");
  message_ = signal == 0 || ran_on
                 ? std::string{"The recording ends here. There is nothing to continue.\n"}
                 : fmt::format("The program died here: {}. There is nothing to continue.\n",
                               gdb_signal_name(signal));
  StopEvent stop = last_stop(id_of(core_.threads().front()));
  events_.assign(1, stop);
  return {};
}

std::optional<StopEvent> CoreTarget::take_event() {
  if (auto event = past_.take_event()) return event;
  if (events_.empty()) return std::nullopt;
  StopEvent event = events_.front();
  events_.pop_front();
  return event;
}

std::vector<ThreadInfo> CoreTarget::threads(pid_t pid) const {
  std::vector<ThreadInfo> out;
  if (left_ || pid != this->pid()) return out;
  for (const decoder::CoreThread& thread : core_.threads()) {
    const auto* trace = traces_.archive().find(thread.tid);
    const bool named = trace != nullptr && !trace->name.empty();
    out.push_back({.id = id_of(thread),
                   .name = named ? trace->name : core_.process().name,
                   .core = -1,
                   .handle = {}});
  }
  for (const decoder::CoreThread& thread : traces_.ended()) {
    const std::string& name = traces_.archive().find(thread.tid)->name;
    out.push_back({.id = id_of(thread),
                   .name = name.empty() ? "(ended)" : name + " (ended)",
                   .core = -1,
                   .handle = {}});
  }
  return out;
}

StopEvent CoreTarget::last_stop(ThreadId thread) const {
  StopEvent stop{.thread = thread, .kind = StopKind::kStopped};
  if (past_.in_past(thread)) return stop;
  const decoder::CoreThread& first = core_.threads().front();
  if (first.signal != 0 && static_cast<std::uint32_t>(thread.tid) == first.tid) {
    stop.kind = StopKind::kSignal;
    stop.signal = first.signal;
  }
  return stop;
}

Result<arch::cpu::RawRegisters> CoreTarget::read_registers(ThreadId thread) {
  const decoder::CoreThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kNotFound, "read registers");
  arch::cpu::RawRegisters out{found->user, found->xsave};
  if (past_.in_past(thread)) past_.read_registers(thread, out);
  return out;
}

KnownRegisters CoreTarget::known_registers(ThreadId thread) {
  const decoder::CoreThread* found = find(thread);
  if (found == nullptr) return {};
  const bool ended = std::ranges::any_of(
      traces_.ended(), [=](const decoder::CoreThread& one) { return one.tid == found->tid; });
  if (!past_.in_past(thread) && !ended) return {};
  arch::cpu::RawRegisters raw{found->user, found->xsave};
  return KnownRegisters{past_.read_registers(thread, raw)};
}

Result<std::string> CoreTarget::exec_file(pid_t /*pid*/) {
  const tracee::AuxvFacts facts = tracee::parse_auxv(core_.auxv(), pointer_bytes());
  for (const TraceeAddr at : {facts.program_headers, facts.entry}) {
    const decoder::CoreMapping* mapping = core_.mapping_at(at);
    if (mapping == nullptr) continue;
    return memory_.find_file(mapping->path).value_or(mapping->path);
  }
  return fail(TraceErrc::kNotFound, "find the program's file");
}

/// Looks below the roots for the path, with and without /usr: if /lib is a link to /usr/lib, the
/// linker and the kernel name a file differently.
std::string CoreTarget::file_path(const std::string& path) {
  if (path.starts_with("/proc/")) return proc_files_.path_of(path);
  std::error_code error;
  for (const std::string& root : roots_) {
    for (const std::string& below : {path, "/usr" + path}) {
      if (path.starts_with('/') && std::filesystem::exists(root + below, error)) {
        return root + below;
      }
    }
  }
  return path;
}

void CoreTarget::symbols_resolved(pid_t pid, const std::map<std::string, TraceeAddr>& symbols) {
  if (thread_db_) return;
  for (const auto& [name, address] : symbols) symbols_.insert_or_assign(name, address);
  const tracee::ThreadDbHost host{
      .pid = pid,
      .isa = core_.isa(),
      .memory = &thread_db_memory_,
      .registers = [this, pid](pid_t tid) -> Result<arch::cpu::UserRegs> {
        const decoder::CoreThread* found = find({pid, tid});
        if (found == nullptr) return fail(TraceErrc::kNotFound, "registers for libthread_db");
        return found->user;
      }};
  if (auto opened = tracee::ThreadDb::open(host, symbols_)) thread_db_ = std::move(*opened);
}

Result<LinkMapList> CoreTarget::link_maps(pid_t /*pid*/) {
  return tracee::read_link_maps(
      [this](TraceeAddr address, std::span<std::uint8_t> out) {
        return memory_.read(address, out);
      },
      core_.auxv(), pointer_bytes());
}

Result<std::vector<std::uint8_t>> CoreTarget::siginfo(ThreadId thread) {
  const decoder::CoreThread* found = find(thread);
  if (found == nullptr || !found->siginfo || past_.in_past(thread))
    return fail(TraceErrc::kNotFound, "siginfo");
  return std::vector<std::uint8_t>{found->siginfo->begin(), found->siginfo->end()};
}

}  // namespace

arch::cpu::GdbRegisterSet core_registers(const decoder::CoreFile& core) {
  return {core.isa(), arch::x86::core_xsave_layout(core.threads().front().xsave)};
}

std::unique_ptr<Target> make_core_target(OpenCore core, std::vector<std::string> roots) {
  return std::make_unique<CoreTarget>(std::make_unique<OpenCore>(std::move(core)),
                                      std::move(roots));
}

}  // namespace backtrail::server
