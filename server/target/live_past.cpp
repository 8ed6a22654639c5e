// SPDX-License-Identifier: Apache-2.0
#include "server/target/live_past.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {

using tracee::StopEvent;
using tracee::StopKind;

struct LivePast::ProcessPast {
  ProcessPast(tracee::Process& process, const PastChanges& changes, const PastStops& stops)
      : end{process, changes}, past{end, stops} {}

  LiveEnd end;
  ProgramPast past;
};

LivePast::LivePast(tracee::Engine& engine, tracee::ValueDepth values)
    : engine_{engine}, values_{values} {}
LivePast::~LivePast() = default;

LivePast::ProcessPast* LivePast::past_of(pid_t pid) {
  if (const auto known = processes_.find(pid); known != processes_.end()) {
    return known->second.get();
  }
  tracee::Process* process = engine_.find(pid);
  if (process == nullptr) return nullptr;
  auto& made = processes_[pid];
  made = std::make_unique<ProcessPast>(*process, changes_[pid], stops_[pid]);
  return made.get();
}

const LivePast::ProcessPast* LivePast::known_past_of(pid_t pid) const {
  const auto known = processes_.find(pid);
  return known == processes_.end() ? nullptr : known->second.get();
}

bool LivePast::in_past(ThreadId thread) const {
  const ProcessPast* known = known_past_of(thread.pid);
  return known != nullptr && known->past.in_past(thread);
}

bool LivePast::any_in_past(pid_t pid) const {
  const ProcessPast* known = known_past_of(pid);
  return known != nullptr && !known->past.threads_in_past().empty();
}

std::string_view LivePast::why_unchangeable() const {
  return "the past cannot be changed: continue to its end first";
}

tracee::TraceConfig LivePast::history_config() const {
  constexpr std::uint64_t kHistoryBytes = 64ULL << 20;
  return {.format = tracee::TraceFormat::kBts, .size_bytes = kHistoryBytes, .values = values_};
}

Result<void> LivePast::keep_history(bool on) {
  for (const tracee::Process* process : engine_.processes()) {
    if (any_in_past(process->pid())) {
      return fail(TraceErrc::kBusy, "history", static_cast<std::uint64_t>(process->pid()));
    }
  }
  drop();
  if (on) return engine_.begin_history(history_config());
  engine_.end_history();
  return {};
}

std::string LivePast::describe_history() const {
  if (!engine_.keeps_history()) return "No history is recorded.\n";
  std::string text = "The history of every thread is recorded.\n";
  for (tracee::Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (!thread->trace() || thread->trace()->past() == nullptr) continue;
      if (thread->stopped()) thread->trace()->flush();
      const decoder::BtsHistory& past = *thread->trace()->past();
      text += fmt::format("thread {}.{}: the last {} branches", process->pid(), thread->tid(),
                          past.records().size());
      // There are none if the process's translated code was made without.
      if (values_ != tracee::ValueDepth::kFree) {
        text += fmt::format(", {} recorded values", past.facts().values());
      }
      text += '\n';
    }
    if (const auto why = why_no_past_memory(*process)) {
      text += fmt::format("process {}: writable memory of the past is unknown: {}\n",
                          process->pid(), *why);
    }
  }
  return text;
}

Result<void> LivePast::go_back(ThreadId thread, tracee::ResumeKind how) {
  if (engine_.running()) return fail(TraceErrc::kNotStopped, "go back");
  ProcessPast* process = past_of(thread.pid);
  if (process == nullptr) {
    return fail(TraceErrc::kNotFound, "go back", static_cast<std::uint64_t>(thread.pid));
  }
  return process->past.go_back(thread, how);
}

std::size_t LivePast::read_memory(ThreadId thread, TraceeAddr address,
                                  std::span<std::uint8_t> out) {
  ProcessPast* process = past_of(thread.pid);
  return process == nullptr ? 0 : process->past.read_memory(thread, address, out);
}

/// Moves the thread forward in its past. A signal that is about to be delivered at the end arrives
/// once more: the debugger has forgotten it, and would not pass it on.
void LivePast::move(const ThreadResume& order) {
  ProgramPast& past = processes_[order.thread.pid]->past;
  past.go_forward(order);
  event_ = past.take_event();
  const tracee::Thread* thread = engine_.find(order.thread);
  if (thread == nullptr || past.in_past(order.thread) || thread->control().pending) return;
  const StopEvent& last = thread->control().last_stop;
  if (last.kind == StopKind::kSignal && thread->at_signal_delivery()) event_ = last;
}

bool LivePast::resume(std::span<const ThreadResume> orders) {
  if (orders.empty()) return false;
  if (const ThreadResume* order = ProgramPast::move_among(orders, preferred_, *this)) {
    move(*order);
    return true;
  }
  std::vector<pid_t> left;
  for (const auto& [pid, process] : processes_) {
    for (const pid_t tid : process->past.threads_in_past()) {
      left.push_back(tid);
      const ThreadId thread{pid, tid};
      if (std::ranges::find(orders, thread, &ThreadResume::thread) != orders.end()) continue;
      // The debugger goes on believing that such a thread is where it was.
      message_ = fmt::format(
          "Thread {} is in its past: continue it to the end before another one runs alone.\n", tid);
      event_ = StopEvent{.thread = orders.front().thread, .kind = StopKind::kStopped};
      return true;
    }
  }
  if (!left.empty()) {
    message_ = fmt::format("The program runs on, and so do threads that were in their past: {}.\n",
                           fmt::join(left, ", "));
  }
  drop();
  return false;
}

std::optional<StopEvent> LivePast::take_event() {
  if (event_) return std::exchange(event_, std::nullopt);
  for (const auto& [pid, process] : processes_) {
    if (auto event = process->past.take_event()) return event;
  }
  return std::nullopt;
}

std::optional<std::string> LivePast::take_message() {
  std::string text = std::exchange(message_, {});
  for (const auto& [pid, process] : processes_) text += process->past.take_message().value_or("");
  return text.empty() ? std::nullopt : std::optional{text};
}

std::vector<bool> LivePast::read_registers(ThreadId thread, arch::cpu::RawRegisters& raw) {
  return past_of(thread.pid)->past.read_registers(thread, raw);
}

void LivePast::insert(pid_t pid, const tracee::BreakpointSpec& breakpoint) {
  // Watchpoints on reads stop the live program only.
  (void)stops_[pid].insert(breakpoint);
}

void LivePast::remove(pid_t pid, const tracee::BreakpointSpec& breakpoint) {
  if (const auto stops = stops_.find(pid); stops != stops_.end()) stops->second.remove(breakpoint);
}

void LivePast::note_change(ThreadId thread) {
  tracee::Thread* found = engine_.find(thread);
  if (found == nullptr) return;
  if (const auto place = present_place(*found)) {
    changes_[thread.pid].insert_or_assign(thread.tid, *place);
  }
  processes_.erase(thread.pid);
}

void LivePast::note_change(pid_t pid) {
  tracee::Process* process = engine_.find(pid);
  if (process == nullptr) return;
  for (const auto& thread : process->threads()) note_change(thread->id());
}

void LivePast::drop() {
  processes_.clear();
}

void LivePast::forget(pid_t pid) {
  processes_.erase(pid);
  stops_.erase(pid);
  changes_.erase(pid);
}

}  // namespace backtrail::server
