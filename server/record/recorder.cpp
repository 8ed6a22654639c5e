// SPDX-License-Identifier: Apache-2.0
#include "server/record/recorder.hpp"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include <poll.h>
#include <sys/resource.h>

#include "arch/base/log.hpp"
#include "ptrace/codecache/memory/spare_memory.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/source/probe.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {
namespace {

using tracee::StopEvent;
using tracee::StopKind;
using tracee::ThreadId;

/// Returns true if the signal's default action ends the process (signal(7)).
bool ends_by_default(int signal) {
  switch (signal) {
    case SIGCHLD:
    case SIGCONT:
    case SIGURG:
    case SIGWINCH:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
      return false;
    default:
      return true;
  }
}

/// Returns true if an instruction raised the signal rather than a process.
bool is_fault(ThreadId id, int signal) {
  if (!tracee::is_raised_by_insns(signal)) return false;
  const auto info = tracee::request::read_siginfo(id.tid);
  return info && info->si_code > 0;
}

bool will_end_the_process(ThreadId id, int signal) {
  if (!ends_by_default(signal)) return false;
  const auto status = tracee::ProcFs{}.status(id.tid);
  if (!status) return false;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(signal - 1);
  // The kernel does not allow a fault to be blocked or ignored.
  if (((status->signals_blocked | status->signals_ignored) & bit) != 0 && is_fault(id, signal)) {
    return true;
  }
  return ((status->signals_caught | status->signals_ignored) & bit) == 0;
}

/// Interval of looks at threads, and so the precision of their times.
constexpr std::chrono::milliseconds kLookEvery{10};
/// Returns how many threads can be looked at. Each takes a descriptor, and crash files need some,
/// too.
std::size_t most_clocks() {
  constexpr rlim_t kMost = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<std::size_t>(std::min(kMost, limit.rlim_cur / 4));
}

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : options_{options},
      most_clocks_{options.times ? most_clocks() : 0},
      statistics_{std::make_shared<tracee::SourceStatistics>()},
      kept_{std::make_shared<tracee::cache::PersistentStore>(
          tracee::cache::PersistentStore::default_folder())},
      spare_{std::make_shared<tracee::cache::SpareMemory>()},
      engine_{options.source} {
  engine_.set_non_stop(true);
  engine_.set_follows_signals(true);
  engine_.set_reported(
      {.fork = true, .vfork = true, .exec = true, .threads = true, .tracing = true});
  // Signals that are passed on without a look.
  engine_.set_pass_signals(
      {SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM, SIGVTALRM});
  engine_.set_on_stranger([this](pid_t tid, const tracee::WaitStatus& status) {
    return leak_watch_.on_stop(tid, status);
  });
}

Recorder::~Recorder() = default;

void Recorder::begin_thread(ThreadId id) {
  ++threads_seen_;
  if (id.pid == id.tid) ++processes_seen_;
  if (!options_.traced) return;
  tracee::TraceConfig config{.format = tracee::TraceFormat::kBts,
                             .size_bytes = options_.ring_bytes,
                             .log_bytes = options_.flush_every ? 0 : options_.ring_bytes,
                             .every_record = options_.flush_every.has_value(),
                             .values = options_.values,
                             .perf = options_.perf};
  if (options_.statistics) config.statistics = statistics_;
  config.kept = kept_;
  config.spare = spare_;
  if (const auto enabled = engine_.enable_trace(id, config); !enabled) {
    // A thread that ended at once is not worth a message.
    if (!enabled.error().is(TraceErrc::kTraceeGone)) {
      log::server().warn("tid={}: not recorded: {}", id.tid,
                         tracee::why_not_recorded(engine_.source(), enabled.error()));
    }
    return;
  }
  if (tracee::Thread* thread = engine_.find(id)) {
    for (RecordObserver* observer : observers_) observer->on_thread(*thread);
  }
}

void Recorder::go_on(ThreadId id, int signal) {
  const std::pair<ThreadId, tracee::ResumeAction> order{id, {.signal = signal}};
  (void)engine_.resume(std::span{&order, 1});
}

void Recorder::handle_signal(const StopEvent& event) {
  const bool ends = !observers_.empty() && will_end_the_process(event.thread, event.signal);
  const Ending ending{.reason = EndReason::kSignal,
                      .signal = event.signal,
                      .sanitized = sanitizers_.in(event.thread.pid)};
  if (ends && wanted(event.thread.pid, ending)) {
    engine_.end_after(event.thread, event.signal, [&] { show(event.thread, ending); });
  } else {
    // Only observers ask for it, and programs that live on their faults have thousands a second.
    if (!ends && !observers_.empty() &&
        (is_fault(event.thread, event.signal) || event.signal == SIGABRT)) {
      note_caught(event);
    }
    go_on(event.thread, event.signal);
  }
}

void Recorder::note_caught(const StopEvent& event) {
  // A handler that faults itself, or aborts, is called within another one. Programs that use faults
  // on purpose have many.
  constexpr std::size_t kMost = 4;
  CaughtFault fault{.signal = event.signal, .info = {}, .pc = {}};
  if (const auto info = tracee::request::read_siginfo(event.thread.tid)) fault.info = *info;
  if (tracee::Thread* thread = engine_.find(event.thread))
    fault.pc = thread->pc().value_or(TraceeAddr{});
  std::vector<CaughtFault>& faults = caught_faults_[event.thread];
  if (faults.size() == kMost) faults.erase(faults.begin());
  faults.push_back(fault);
}

std::span<const CaughtFault> Recorder::caught_faults(ThreadId id) const {
  const auto found = caught_faults_.find(id);
  return found == caught_faults_.end() ? std::span<const CaughtFault>{} : found->second;
}

bool Recorder::wanted(pid_t pid, const Ending& ending) const {
  return std::any_of(observers_.begin(), observers_.end(),
                     [&](RecordObserver* each) { return each->wants(pid, ending); });
}

void Recorder::show(ThreadId id, const Ending& ending) {
  tracee::Thread* thread = engine_.find(id);
  if (thread == nullptr) return;
  for (RecordObserver* observer : observers_) {
    if (observer->wants(id.pid, ending)) observer->on_ending(thread->process(), *thread, ending);
  }
}

void Recorder::look(ThreadId id, const Ending& ending) {
  if (!wanted(id.pid, ending)) return;
  engine_.while_stopped(id.pid, [&] { show(id, ending); });
}

void Recorder::look_at_all(const Ending& ending) {
  std::vector<ThreadId> ids;
  for (const tracee::Process* process : engine_.processes()) {
    if (!process->threads().empty()) ids.push_back(process->threads().front()->id());
  }
  // The program first, then its children, the youngest first.
  std::sort(ids.begin(), ids.end(), [this](const ThreadId& one, const ThreadId& other) {
    return std::pair{one.pid == program_, one.pid} > std::pair{other.pid == program_, other.pid};
  });
  for (const ThreadId& id : ids) look(id, ending);
}

void Recorder::handle_exiting(const StopEvent& event) {
  tracee::Thread* thread = engine_.find(event.thread);
  if (thread == nullptr || observers_.empty()) {
    go_on(event.thread);
    return;
  }
  Ending ending{.reason = event.signal != 0 ? EndReason::kSignal : EndReason::kExit,
                .signal = event.signal,
                .exit_code = event.exit_code,
                .sanitized = sanitizers_.in(event.thread.pid)};
  ThreadId whose = event.thread;
  if (event.signal == 0) {
    const bool alone = thread->process().threads().size() == 1;
    // In the other threads, when one ends the process: it has an exit status but made no exit call.
    const bool ended_by_other = event.exit_code != 0 && !is_ending_itself(*thread);
    if (!alone && !is_ending_process(*thread) && !ended_by_other) {
      for (RecordObserver* observer : observers_) observer->on_thread_end(*thread);
      go_on(event.thread);
      return;
    }
    if (event.exit_code != 0 && ending.sanitized) {
      engine_.while_stopped(whose.pid, [&] {
        const tracee::Thread* found = sanitizers_.ending_thread(thread->process());
        if (found == nullptr) return;
        ending.reason = EndReason::kSanitizer;
        whose = found->id();
      });
    }
  }
  look(whose, ending);
  go_on(event.thread);
}

void Recorder::handle_breakpoint(const StopEvent& event) {
  tracee::Thread* thread = engine_.find(event.thread);
  const auto stop =
      thread == nullptr ? Sanitizers::Stop::kNotOurs : sanitizers_.on_breakpoint(*thread);
  if (stop != Sanitizers::Stop::kLeakCheck) {
    go_on(event.thread);
    return;
  }
  const pid_t pid = event.thread.pid;
  look(event.thread, {.reason = EndReason::kLeakCheck, .sanitized = true});
  // For the program itself, if it succeeds except for leaks, the exit status tells.
  const auto exit_code = sanitizers_.exit_code(pid);
  const bool watched = exit_code && (*exit_code != 0 || pid != program_) && !observers_.empty();
  const auto watch = [&] {
    if (watched) leak_watch_.begin(*thread);
  };
  sanitizers_.on_end(pid);
  if (const auto done = engine_.let_go(event.thread, watch); !done) {
    log::server().warn("pid={}: {}", pid, done.error().message());
  }
}

/// Lets the process continue unrecorded. The end of the server's own child is reported even so.
void Recorder::leave(ThreadId id) {
  sanitizers_.on_end(id.pid);
  const auto done = id.pid == program_ ? engine_.let_go(id) : engine_.detach(id.pid);
  if (!done) log::server().warn("pid={}: {}", id.pid, done.error().message());
}

/// A program whose memory may not be read could only be stepped, blindly.
bool Recorder::leaves_unreadable(ThreadId id) {
  if (!options_.traced) return false;
  const auto permitted = tracee::ProcFs{}.may_read_maps(id.pid);
  if (permitted || !permitted.error().is(std::errc::permission_denied)) return false;
  left_.add_unreadable(id.pid);
  leave(id);
  return true;
}

/// A debugger, strace or a crash handler wants to trace the process, and a process has only one
/// tracer.
void Recorder::handle_trace_request(const StopEvent& event) {
  const ThreadId target = event.child;
  if (engine_.find(target) == nullptr) return go_on(event.thread);
  // A process that attaches now usually inspects a crash.
  const auto fault =
      std::find_if(caught_faults_.begin(), caught_faults_.end(), [&](const auto& caught) {
        return caught.first.pid == target.pid && engine_.find(caught.first);
      });
  if (fault != caught_faults_.end()) {
    look(fault->first, {.reason = EndReason::kSignal,
                        .signal = fault->second.back().signal,
                        .sanitized = sanitizers_.in(target.pid)});
  }
  const pid_t tracer = target.pid == event.thread.pid
                           ? tracee::ProcFs{}.stat(target.pid).value_or(tracee::ProcStat{}).ppid
                           : event.thread.pid;
  left_.add_traced(target.pid, tracer);
  leave(target);
  if (target.pid != event.thread.pid) go_on(event.thread);
}

void Recorder::handle_checked(pid_t pid, bool by_sanitizer, int exit_code) {
  const Ending ending{.reason = by_sanitizer ? EndReason::kSanitizer : EndReason::kExit,
                      .exit_code = exit_code,
                      .sanitized = true};
  for (RecordObserver* observer : observers_) observer->on_checked(pid, ending);
}

void Recorder::flush_all() {
  for (const tracee::Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->trace()) thread->trace()->source().flush();
    }
  }
  flush_clock_.set(*options_.flush_every);
}

void Recorder::look_at_clocks() {
  std::size_t open = 0;
  for (const tracee::Process* process : engine_.processes()) {
    for (const auto& thread : process->threads()) {
      tracee::ThreadTrace* trace = thread->trace().get();
      if (trace == nullptr) continue;
      if (tracee::ThreadClock* clock = trace->clock()) {
        clock->look(*thread, trace->source());
      } else if (open >= most_clocks_) {
        continue;
      } else if (const auto started = trace->start_clock();
                 !started && !started.error().is(TraceErrc::kTraceeGone)) {
        log::server().debug("no times: {}", started.error().message());
        most_clocks_ = open;
      }
      ++open;
    }
  }
  if (most_clocks_ != 0) look_clock_.set(kLookEvery);
}

void Recorder::end_the_run() {
  constexpr std::chrono::seconds kGrace{2};
  const int signal = timed_out_ ? SIGKILL : SIGTERM;
  if (!timed_out_) look_at_all({.reason = EndReason::kTimeout});
  timed_out_ = true;
  std::set<pid_t> all{program_};
  for (const tracee::Process* process : engine_.processes()) all.insert(process->pid());
  for (const pid_t pid : all) ::kill(pid, signal);
  left_.send(signal);
  clock_.set(kGrace);
}

void Recorder::handle(const StopEvent& event) {
  switch (event.kind) {
    case StopKind::kProcessExited:
    case StopKind::kProcessSignalled:
      for (RecordObserver* observer : observers_) observer->on_end(event.thread.pid, event);
      std::erase_if(caught_faults_,
                    [&](const auto& caught) { return caught.first.pid == event.thread.pid; });
      sanitizers_.on_end(event.thread.pid);
      if (event.thread.pid == program_) end_ = event;
      return;
    case StopKind::kSignal:
      handle_signal(event);
      return;
    case StopKind::kExiting:
      handle_exiting(event);
      return;
    case StopKind::kSoftwareBreakpoint:
      handle_breakpoint(event);
      return;
    case StopKind::kTraceRequest:
      handle_trace_request(event);
      return;
    case StopKind::kExec:
      if (leaves_unreadable(event.thread)) return;
      for (RecordObserver* observer : observers_) observer->on_exec(event.thread.pid);
      sanitizers_.on_exec(event.thread.pid);
      if (tracee::Thread* thread = engine_.find(event.thread)) {
        for (RecordObserver* observer : observers_) observer->on_exec_thread(*thread);
      }
      break;
    case StopKind::kFork:
    case StopKind::kVfork:
      sanitizers_.on_fork(event.thread.pid, event.child.pid);
      begin_thread(event.child);
      go_on(event.child);
      break;
    case StopKind::kThreadCreated:
      begin_thread(event.thread);
      break;
    case StopKind::kThreadExited:
      for (RecordObserver* observer : observers_) observer->on_thread_gone(event.thread);
      return;
    case StopKind::kNoResumed:
      return;
    default:
      break;
  }
  go_on(event.thread);
}

/// Only observers want to hear of signals.
void Recorder::pass_signals_unseen() {
  if (!observers_.empty()) return;
  engine_.set_pass_signals(tracee::all_signals());
}

Result<StopEvent> Recorder::run(const tracee::LaunchSpec& spec) {
  pass_signals_unseen();
  tracee::ReportedEvents reported = engine_.reported();
  reported.exits = !observers_.empty();
  engine_.set_reported(reported);
  BT_TRY(program_, engine_.launch(spec));
  const ThreadId main{program_, program_};
  if (!leaves_unreadable(main)) {
    begin_thread(main);  // which may replace the thread
    sanitizers_.on_exec(program_);
    go_on(main);
  }
  if (options_.limit) clock_.set(*options_.limit);
  if (options_.flush_every) flush_clock_.set(*options_.flush_every);
  if (most_clocks_ != 0) look_clock_.set(kLookEvery);
  const auto terminated = [this] {
    look_at_all({.reason = EndReason::kTerminated, .signal = SIGTERM});
  };
  // Four descriptors; a program that lives on its signals has no time to have them read each time.
  bool clocks_called = true;
  constexpr unsigned kTurnsUnasked = 16;
  unsigned turns = 0;
  while (!end_) {
    engine_.pump(look_clock_.fd());
    while (const auto event = engine_.take_event()) handle(*event);
    if (clocks_called) {
      signals_.forward(program_, terminated);
      if (end_) break;
      if (clock_.is_up()) end_the_run();
      if (flush_clock_.is_up()) flush_all();
      if (look_clock_.is_up()) look_at_clocks();
    }
    if (end_) break;
    // Then the clocks have time, too: some thousand signals come in a second.
    if (engine_.runs_in_turns() && ++turns % kTurnsUnasked != 0) {
      clocks_called = false;
      continue;
    }
    pollfd waited[] = {{engine_.event_fd(), POLLIN, 0}, {look_clock_.fd(), POLLIN, 0}};
    // A leader that ended before its other threads is found only by looking now and then.
    constexpr int kLookAgainMs = 1000;
    // As short as the engine asks for.
    constexpr int kSharedMs = 5;
    const int most = engine_.shares_cpu() ? kSharedMs : kLookAgainMs;
    ::poll(waited, 2, engine_.runs_in_turns() ? 0 : most);
    clocks_called = waited[1].revents != 0;
  }
  let_go_of_the_rest();
  return *end_;
}

void Recorder::let_go_of_the_rest() {
  for (const tracee::Process* process : engine_.processes()) {
    const pid_t pid = process->pid();
    if (const auto done = timed_out_ ? engine_.kill(pid) : engine_.detach(pid); !done) {
      log::server().warn("pid={}: {}", pid, done.error().message());
    }
  }
}

}  // namespace backtrail::server
