// SPDX-License-Identifier: Apache-2.0
#include "server/cli/serve.hpp"

#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "arch/base/log.hpp"
#include "ptrace/tracee/attach_check.hpp"
#include "ptrace/tracee/launch.hpp"
#include "server/cli/cli_words.hpp"
#include "server/cli/session_conversation.hpp"
#include "server/session/notices.hpp"
#include "server/target/live_target.hpp"
#include "server/transport/server_loop.hpp"

namespace backtrail::server {
namespace {

/// Prints the error and ends the start like gdbserver.
int give_up(const std::string& text) {
  fmt::print(stderr, "{}\nExiting\n", text);
  return 1;
}

Explained<void> set_up_logging(const ServeOptions& options) {
  if (!options.log_file.empty()) {
    if (const auto opened = log::to_file(options.log_file); !opened) {
      return explain(
          fmt::format("cannot log to {}: {}", options.log_file, opened.error().message()));
    }
  }
  if (const auto configured = log::configure(options.log); !configured) {
    return explain(wrong_log_levels(options.log));
  }
  return {};
}

std::string attach_failure(pid_t pid, const Error& error) {
  if (error.code.category() == std::system_category()) {
    std::string text = fmt::format("Cannot attach to process {}: {} ({})", pid,
                                   error.code.message(), error.code.value());
    if (error.code.value() != ESRCH) {
      text += "\n" + tracee::explain_attach_failure(pid, error);
    }
    return text;
  }
  if (error.is(TraceErrc::kTraceeGone)) {
    return fmt::format("Cannot attach to process {}: No such process ({})", pid, ESRCH);
  }
  return fmt::format("Cannot attach to process {}: {}", pid,
                     tracee::explain_attach_failure(pid, error));
}

/// Launches or attaches to the command line's program and brings it to its first stop.
Explained<void> start(const ServeOptions& options, Target& target) {
  ProcessControl* control = target.process_control();
  if (options.attach) {
    const auto pid = control->attach(*options.attach);
    if (!pid) return explain(attach_failure(*options.attach, pid.error()));
    notices::attached(*pid);
  } else if (!options.launch.program.empty()) {
    if (options.launch.stdio_is_protocol) notices::streams_redirected();
    const auto pid = control->launch(options.launch);
    if (!pid) return explain(tracee::launch_failure_text(pid.error(), options.launch));
    notices::process_created(options.launch.program, *pid);
  }
  return {};
}

}  // namespace

int run_serve(const ServeOptions& options, Target& target) {
  ServerState state;
  state.multi = options.multi;
  state.launch = options.launch;
  state.disabled_packets = options.disabled_packets;
  LoopOptions loop_options{.once = options.once};
  if (options.as_gdbserver) loop_options.server_name = "GDBserver";
  // The tail socket comes first: the loop waits for its clients too.
  if (!options.tail.path.empty()) {
    const auto listening = target.branch_tracing()->listen_for_tails(options.tail);
    if (!listening)
      return give_up(
          fmt::format("cannot listen on {}: {}", options.tail.path, listening.error().message()));
  }
  const auto loop = ServerLoop::open(options.comm, target, state, session_factory(target, state),
                                     std::move(loop_options));
  if (!loop) return give_up(loop.error());
  if (const auto started = start(options, target); !started) return give_up(started.error());
  if (BranchTracing* tracing = target.branch_tracing()) {
    log::server().info("op=start source: {}", tracing->describe());
  }
  return (*loop)->run();
}

int run_serve(const ServeOptions& options) {
  if (const auto ready = set_up_logging(options); !ready) return give_up(ready.error());
  const std::unique_ptr<Target> target =
      make_live_target(options.source, options.from_start, options.values);
  return run_serve(options, *target);
}

}  // namespace backtrail::server
