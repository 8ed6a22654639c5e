#include "server/record/recorder.hpp"

#include <csignal>

#include <poll.h>

#include "arch/base/log.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/source/thread_trace.hpp"

namespace backtrail::server {
namespace {

using tracee::StopEvent;
using tracee::StopKind;
using tracee::ThreadId;

/// What the signal does when nothing is set up for it (signal(7)).
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

/// The instruction at the pc raised it; nobody sent it.
bool is_fault(ThreadId id, int signal) {
  if (signal != SIGSEGV && signal != SIGBUS && signal != SIGFPE && signal != SIGILL) return false;
  const auto info = tracee::request::read_siginfo(id.tid);
  return info && info->si_code > 0;
}

bool will_end_the_process(ThreadId id, int signal) {
  if (!ends_by_default(signal)) return false;
  const auto status = tracee::ProcFs{}.status(id.tid);
  if (!status) return false;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(signal - 1);
  // The kernel does not let a fault be blocked or ignored.
  if (((status->signals_blocked | status->signals_ignored) & bit) != 0 && is_fault(id, signal)) {
    return true;
  }
  return ((status->signals_caught | status->signals_ignored) & bit) == 0;
}

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : options_{options},
      statistics_{std::make_shared<tracee::SourceStatistics>()},
      kept_{std::make_shared<tracee::cache::KeptStore>(tracee::cache::KeptStore::default_folder())},
      engine_{options.source} {
  engine_.set_non_stop(true);
  engine_.reported = {.fork = true, .vfork = true, .exec = true, .threads = true};
  // Harmless ones need nobody.
  engine_.pass_signals = {SIGCHLD, SIGCONT, SIGURG,  SIGWINCH, SIGSTOP,
                          SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM,  SIGVTALRM};
}

Recorder::~Recorder() = default;

void Recorder::begin_thread(ThreadId id) {
  ++threads_seen_;
  if (id.pid == id.tid) ++processes_seen_;
  if (!options_.traced) return;
  tracee::TraceConfig config{.format = tracee::TraceFormat::kBts,
                             .size_bytes = options_.ring_bytes,
                             .log_bytes = options_.ring_bytes};
  if (options_.statistics) config.statistics = statistics_;
  config.kept = kept_;
  if (const auto enabled = engine_.enable_trace(id, config); !enabled) {
    log::server().debug("tid={}: {}", id.tid, enabled.error().message());
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
  if (!observers_.empty() && will_end_the_process(event.thread, event.signal)) {
    engine_.while_stopped(event.thread.pid, [&] {
      tracee::Thread* thread = engine_.find(event.thread);
      if (thread == nullptr) return;
      for (RecordObserver* observer : observers_) {
        observer->on_fatal_signal(thread->process(), *thread, event.signal);
      }
    });
  }
  go_on(event.thread, event.signal);
}

void Recorder::handle(const StopEvent& event) {
  switch (event.kind) {
    case StopKind::kProcessExited:
    case StopKind::kProcessSignalled:
      for (RecordObserver* observer : observers_) observer->on_end(event.thread.pid, event);
      if (event.thread.pid == program_) end_ = event;
      return;
    case StopKind::kSignal:
      handle_signal(event);
      return;
    case StopKind::kFork:
    case StopKind::kVfork:
      begin_thread(event.child);
      go_on(event.child);
      break;
    case StopKind::kThreadCreated:
      begin_thread(event.thread);
      break;
    case StopKind::kThreadExited:
    case StopKind::kNoResumed:
      return;
    default:
      break;
  }
  go_on(event.thread);
}

Result<StopEvent> Recorder::run(const tracee::LaunchSpec& spec) {
  BT_TRY(program_, engine_.launch(spec));
  const ThreadId main{program_, program_};
  begin_thread(main);
  go_on(main);
  while (!end_) {
    engine_.pump(signals_.fd());
    while (const auto event = engine_.take_event()) handle(*event);
    signals_.forward(program_);
    if (end_) break;
    pollfd waited[] = {{engine_.event_fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    // A leader that ended before its threads is found by looking now and then.
    constexpr int kLookAgainMs = 1000;
    ::poll(waited, 2, kLookAgainMs);
  }
  let_go_of_the_rest();
  return *end_;
}

void Recorder::let_go_of_the_rest() {
  for (const tracee::Process* process : engine_.processes()) {
    const pid_t pid = process->pid();
    if (const auto done = engine_.detach(pid); !done) {
      log::server().warn("pid={}: {}", pid, done.error().message());
    }
  }
}

}  // namespace backtrail::server
