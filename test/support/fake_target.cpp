// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_target.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace backtrail::test {
namespace {

using arch::x86::RawRegisters;
using arch::x86::UserReg;
using server::ThreadId;
using tracee::StopEvent;
using tracee::StopKind;

constexpr std::uint64_t kMemory = 0x1000;
constexpr std::size_t kMemoryBytes = 4096;

/// The layout of a CPU with x87 and SSE only, so that descriptions do not depend on the machine.
arch::x86::XsaveLayout plain_layout() {
  arch::x86::XsaveLayout layout;
  layout.xcr0 = 3;
  layout.size_bytes = 512;
  return layout;
}

bool ends_process(StopKind kind) {
  return kind == StopKind::kProcessExited || kind == StopKind::kProcessSignalled;
}

template <typename T>
Result<T> answer(const std::optional<T>& value) {
  if (!value) return fail(TraceErrc::kUnsupported, "fake");
  return *value;
}

}  // namespace

FakeTarget::FakeTarget(FakeAbilities abilities)
    : abilities_{abilities}, registers_{arch::Isa::kAmd64, plain_layout()} {}

ThreadId FakeTarget::add_process(pid_t pid) {
  std::vector<std::uint8_t> bytes(kMemoryBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  all[pid].memory[kMemory] = std::move(bytes);
  return add_thread(pid, pid);
}

ThreadId FakeTarget::add_thread(pid_t pid, pid_t tid) {
  FakeThread thread;
  thread.name = "fake";
  thread.registers.xsave.resize(512);
  thread.registers.user[UserReg::kRip] = kMemory;
  thread.last_stop = {.thread = {pid, tid}, .kind = StopKind::kStopped, .exec_path = {}};
  all[pid].threads[tid] = std::move(thread);
  return {pid, tid};
}

void FakeTarget::post(StopEvent event) {
  if (!non_stop) {
    for (auto& [pid, process] : all) {
      for (auto& [tid, thread] : process.threads) thread.running = false;
    }
  }
  if (FakeThread* thread = find(event.thread)) {
    thread->running = false;
    thread->last_stop = event;
  }
  if (ends_process(event.kind)) all.erase(event.thread.pid);
  events.push_back(std::move(event));
}

FakeThread* FakeTarget::find(ThreadId id) {
  const auto process = all.find(id.pid);
  if (process == all.end()) return nullptr;
  const auto thread = process->second.threads.find(id.tid);
  return thread == process->second.threads.end() ? nullptr : &thread->second;
}

const FakeThread* FakeTarget::find(ThreadId id) const {
  const auto process = all.find(id.pid);
  if (process == all.end()) return nullptr;
  const auto thread = process->second.threads.find(id.tid);
  return thread == process->second.threads.end() ? nullptr : &thread->second;
}

server::ProcessControl* FakeTarget::process_control() {
  return abilities_.process_control ? this : nullptr;
}
server::RunControl* FakeTarget::run_control() {
  return abilities_.run_control ? this : nullptr;
}
server::BreakpointControl* FakeTarget::breakpoint_control() {
  return abilities_.breakpoint_control ? this : nullptr;
}
server::PastControl* FakeTarget::past_control() {
  return abilities_.past_control || recorded ? this : nullptr;
}

server::KnownRegisters FakeTarget::known_registers(ThreadId thread) {
  const auto found = known.find(thread);
  return found == known.end() ? server::KnownRegisters{} : server::KnownRegisters{found->second};
}

Result<void> FakeTarget::go_back(ThreadId thread, tracee::ResumeKind how) {
  if (find(thread) == nullptr || ended.contains(thread)) {
    return fail(TraceErrc::kNotFound, "go back");
  }
  moved_back.push_back({thread, how});
  return {};
}

std::size_t FakeTarget::read_memory(ThreadId /*thread*/, TraceeAddr /*address*/,
                                    std::span<std::uint8_t> out) {
  const std::size_t count = std::min(out.size(), past_memory.size());
  std::copy_n(past_memory.begin(), count, out.begin());
  return count;
}

server::BranchTracing* FakeTarget::branch_tracing() {
  return abilities_.branch_tracing ? this : nullptr;
}

std::vector<pid_t> FakeTarget::processes() const {
  std::vector<pid_t> pids;
  for (const auto& [pid, process] : all) pids.push_back(pid);
  return pids;
}

std::vector<server::ThreadInfo> FakeTarget::threads(pid_t pid) const {
  std::vector<server::ThreadInfo> infos;
  const auto process = all.find(pid);
  if (process == all.end()) return infos;
  for (const auto& [tid, thread] : process->second.threads) {
    infos.push_back({{pid, tid}, thread.name, thread.core, thread.handle});
  }
  return infos;
}

bool FakeTarget::alive(ThreadId thread) const {
  return find(thread) != nullptr;
}

bool FakeTarget::was_attached(pid_t pid) const {
  return all.contains(pid) && all.at(pid).attached;
}

StopEvent FakeTarget::last_stop(ThreadId thread) const {
  const FakeThread* found = find(thread);
  return found == nullptr ? StopEvent{} : found->last_stop;
}

Result<const arch::x86::GdbRegisterSet*> FakeTarget::register_set(pid_t pid) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake registers");
  return &registers_;
}

Result<RawRegisters> FakeTarget::read_registers(ThreadId thread) {
  const FakeThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kTraceeGone, "fake registers");
  if (found->running) return fail(TraceErrc::kNotStopped, "fake registers");
  return found->registers;
}

Result<void> FakeTarget::write_registers(ThreadId thread, const RawRegisters& regs) {
  FakeThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kTraceeGone, "fake registers");
  if (recorded) return fail(errno_error(EROFS, "fake registers"));
  found->registers = regs;
  return {};
}

Result<std::size_t> FakeTarget::read_memory(pid_t pid, TraceeAddr address,
                                            std::span<std::uint8_t> out) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake memory");
  for (const auto& [start, bytes] : all.at(pid).memory) {
    const std::uint64_t offset = address.value() - start;
    if (address.value() < start || offset >= bytes.size()) continue;
    const std::size_t count = std::min<std::size_t>(out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
    return count;
  }
  return std::size_t{0};
}

Result<void> FakeTarget::write_memory(pid_t pid, TraceeAddr address,
                                      std::span<const std::uint8_t> data) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake memory");
  if (recorded) return fail(errno_error(EROFS, "fake memory"));
  for (auto& [start, bytes] : all.at(pid).memory) {
    const std::uint64_t offset = address.value() - start;
    if (address.value() < start || offset >= bytes.size()) continue;
    if (bytes.size() - offset < data.size()) break;
    std::ranges::copy(data, bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  }
  return fail(TraceErrc::kUnreadable, "fake memory", address.value());
}

Result<std::vector<std::uint8_t>> FakeTarget::auxv(pid_t pid) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake auxv");
  return all.at(pid).auxv;
}

Result<std::string> FakeTarget::exec_file(pid_t pid) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake exec file");
  return all.at(pid).exec_file;
}

Result<server::LinkMapList> FakeTarget::link_maps(pid_t pid) {
  if (!all.contains(pid)) return fail(TraceErrc::kTraceeGone, "fake link maps");
  return answer(all.at(pid).link_maps);
}

Result<std::vector<std::uint8_t>> FakeTarget::siginfo(ThreadId thread) {
  const FakeThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kTraceeGone, "fake siginfo");
  return found->siginfo;
}

Result<void> FakeTarget::set_siginfo(ThreadId thread, std::span<const std::uint8_t> bytes) {
  FakeThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kTraceeGone, "fake siginfo");
  found->siginfo.assign(bytes.begin(), bytes.end());
  return {};
}

std::vector<std::string> FakeTarget::wanted_symbols(pid_t /*pid*/) {
  if (wanted.empty()) return {};
  auto names = std::move(wanted.front());
  wanted.erase(wanted.begin());
  return names;
}

void FakeTarget::symbols_resolved(pid_t /*pid*/, const std::map<std::string, TraceeAddr>& symbols) {
  resolved.push_back(symbols);
}

Result<TraceeAddr> FakeTarget::tls_address(ThreadId /*thread*/, std::uint64_t offset,
                                           TraceeAddr /*link_map*/) {
  if (!tls) return fail(TraceErrc::kUnsupported, "fake tls");
  return *tls + offset;
}

Result<pid_t> FakeTarget::launch(const tracee::LaunchSpec& spec) {
  launches.push_back(spec);
  if (launch_error) return fail(*launch_error);
  const pid_t pid = 1000 + static_cast<pid_t>(launches.size());
  add_process(pid);
  thread({pid, pid}).last_stop = {
      .thread = {pid, pid}, .kind = StopKind::kSignal, .signal = SIGTRAP, .exec_path = {}};
  return pid;
}

Result<pid_t> FakeTarget::attach(pid_t pid) {
  if (attach_error) return fail(*attach_error);
  add_process(pid);
  all.at(pid).attached = true;
  return pid;
}

Result<void> FakeTarget::detach(pid_t pid) {
  if (all.erase(pid) == 0) return fail(TraceErrc::kNotFound, "fake detach");
  detached.push_back(pid);
  return {};
}

Result<void> FakeTarget::kill(pid_t pid) {
  if (all.erase(pid) == 0) return fail(TraceErrc::kNotFound, "fake kill");
  killed.push_back(pid);
  return {};
}

Result<void> FakeTarget::resume(std::span<const server::ThreadResume> orders) {
  resumes.emplace_back(orders.begin(), orders.end());
  if (!non_stop && !events.empty()) return {};
  for (const server::ThreadResume& order : orders) {
    FakeThread* found = find(order.thread);
    if (found != nullptr) found->running = order.action.kind != tracee::ResumeKind::kStop;
  }
  return {};
}

std::optional<StopEvent> FakeTarget::take_event() {
  if (events.empty()) return std::nullopt;
  StopEvent event = std::move(events.front());
  events.pop_front();
  return event;
}

bool FakeTarget::running() const {
  return std::ranges::any_of(all, [](const auto& process) {
    return std::ranges::any_of(process.second.threads,
                               [](const auto& thread) { return thread.second.running; });
  });
}

bool FakeTarget::is_running(ThreadId thread) const {
  const FakeThread* found = find(thread);
  return found != nullptr && found->running;
}

void FakeTarget::stop_all() {
  ++stop_alls;
  for (auto& [pid, process] : all) {
    for (auto& [tid, thread] : process.threads) thread.running = false;
  }
}

Result<void> FakeTarget::set_catch_syscalls(pid_t pid,
                                            std::optional<std::set<std::int64_t>> numbers) {
  caught_syscalls[pid] = std::move(numbers);
  return {};
}

void FakeTarget::set_reported_events(bool fork, bool vfork, bool exec) {
  reported_events = ReportedEvents{fork, vfork, exec};
}

Result<void> FakeTarget::insert(pid_t /*pid*/, tracee::BreakpointSpec spec) {
  if (insert_error) return fail(*insert_error);
  breakpoints.push_back(std::move(spec));
  return {};
}

Result<void> FakeTarget::remove(pid_t /*pid*/, const tracee::BreakpointSpec& spec) {
  const auto removed = std::erase_if(breakpoints, [&spec](const auto& present) {
    return present.kind == spec.kind && present.address == spec.address;
  });
  if (removed == 0) return fail(TraceErrc::kNotFound, "fake breakpoint");
  return {};
}

Result<void> FakeTarget::enable(ThreadId thread, tracee::TraceConfig config) {
  FakeThread* found = find(thread);
  if (enable_error) return fail(*enable_error);
  if (found == nullptr) return fail(TraceErrc::kNotFound, "fake trace");
  if (found->trace) return fail(TraceErrc::kAlreadyEnabled, "fake trace");
  found->trace = config;
  return {};
}

Result<void> FakeTarget::disable(ThreadId thread) {
  FakeThread* found = find(thread);
  if (found == nullptr || !found->trace) return fail(TraceErrc::kNotEnabled, "fake trace");
  found->trace.reset();
  return {};
}

std::optional<tracee::TraceConfig> FakeTarget::config(ThreadId thread) {
  const FakeThread* found = find(thread);
  return found == nullptr ? std::nullopt : found->trace;
}

Result<server::TraceDocument> FakeTarget::read(ThreadId /*thread*/, server::TraceRead what) {
  ++trace_reads;
  const auto trace = traces.find(what);
  if (trace == traces.end()) return fail(TraceErrc::kOverflow, "fake trace");
  return trace->second;
}

}  // namespace backtrail::test
