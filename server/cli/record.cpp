// SPDX-License-Identifier: Apache-2.0
#include "server/cli/record.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include <malloc.h>
#include <sys/resource.h>

#include <fmt/format.h>

#include "arch/base/log.hpp"
#include "ptrace/source/probe.hpp"
#include "ptrace/tracee/launch.hpp"
#include "server/cli/cli_words.hpp"
#include "server/record/crash_file.hpp"
#include "server/record/output_place.hpp"
#include "server/record/recorder.hpp"
#include "server/record/statistics_text.hpp"
#include "server/record/unrecorded.hpp"

namespace backtrail::server {
namespace {

using Clock = std::chrono::steady_clock;

// Exit statuses of shells.
constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;
// Exit status of timeout(1).
constexpr int kExitTimedOut = 124;
constexpr int kExitNothingRun = 125;

std::chrono::nanoseconds cpu_time(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto of = [](const timeval& time) {
    return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

int cannot_start(const Error& error, const tracee::LaunchSpec& spec) {
  fmt::print(stderr, "backtrail: {}\n", tracee::launch_failure_text(error, spec));
  return error.is(std::errc::no_such_file_or_directory) ? kExitNotFound : kExitNotExecutable;
}

std::string command_of(const tracee::LaunchSpec& spec) {
  std::string text = spec.program;
  for (const std::string& word : spec.arguments) text += " " + word;
  return text;
}

/// Keeps memory that the end of one process frees for the next one: to give it back and to get it
/// again costs a page fault for each page.
void keep_freed_memory() {
  constexpr int kMiB = 1 << 20;
  (void)::mallopt(M_TRIM_THRESHOLD, 8 * kMiB);
  (void)::mallopt(M_MMAP_THRESHOLD, 2 * kMiB);
}

void warn(const std::string& text) {
  fmt::print(stderr, "backtrail: warning: {}\n", text);
}

/// Prepares the output files before the program runs. Problems are printed at once; the program
/// runs anyway.
void prepare_files(const RecordOptions& options, RecorderOptions& recorder,
                   std::optional<TraceSpool>& spool) {
  if (options.crash_file.empty()) return;
  const OutputPlace place =
      prepare_output(file_pattern(options.crash_file), options.launch.program, options.pack);
  if (!place.problem.empty()) {
    warn("no crash file can be kept: " + place.problem);
  }
  if (!options.all) return;
  try {
    spool.emplace(place.folder, options.spool_bytes);
  } catch (const std::exception& error) {
    if (place.problem.empty()) {
      warn(fmt::format("--all is not possible, and only the newest branches are kept: {}",
                       error.what()));
    }
    recorder.ring_bytes = RecorderOptions{}.ring_bytes;
    recorder.flush_every.reset();
  }
}

/// Result of a run.
struct Outcome {
  tracee::StopEvent end;
  bool timed_out = false;
};

Result<Outcome> run_recorded(const RecordOptions& options) {
  const auto begin = Clock::now();
  RecorderOptions recorder_options = options.recorder;
  std::optional<TraceSpool> spool;
  prepare_files(options, recorder_options, spool);
  Recorder recorder{recorder_options};
  if (spool) recorder.add(*spool);
  CrashFiles crash_files{recorder,
                         {.pattern = file_pattern(options.crash_file),
                          .keep = options.keep,
                          .undumpable = options.undumpable,
                          .pack = options.pack,
                          .attachments = options.attachments,
                          .project = options.project,
                          .core = options.core,
                          .spool = spool ? &*spool : nullptr,
                          .ended_bytes = recorder_options.ring_bytes},
                         command_of(options.launch)};
  if (!options.crash_file.empty()) recorder.add(crash_files);
  BT_TRY(const tracee::StopEvent end, recorder.run(options.launch));
  if (recorder.timed_out()) {
    fmt::print(stderr, "backtrail: stopped after {} s (timeout)\n",
               std::chrono::duration<double>{*options.recorder.limit}.count());
  }
  const std::string told = recorder.left().text() + crash_files.finish(end);
  std::fwrite(told.data(), 1, told.size(), stderr);
  if (options.recorder.statistics) {
    const RunFacts run{.processes = recorder.processes_seen(),
                       .threads = recorder.threads_seen(),
                       .left = recorder.left().count(),
                       .wall = Clock::now() - begin,
                       .recorder_cpu = cpu_time(RUSAGE_SELF),
                       .program_cpu = cpu_time(RUSAGE_CHILDREN)};
    const std::string text = statistics_text(recorder.statistics(), run);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return Outcome{end, recorder.timed_out()};
}

/// Runs the program unrecorded: a test must not fail because recording is impossible.
int run_without(const Error& why, const RecordOptions& options) {
  fmt::print(stderr, "backtrail: {} runs unrecorded: {}\n", options.launch.program,
             tracee::trace_refusal_text(why));
  std::fflush(stderr);
  const auto status = run_unrecorded(options.launch, options.recorder.limit);
  if (!status) return cannot_start(status.error(), options.launch);
  if (*status == kExitTimedOut) {
    fmt::print(stderr, "backtrail: stopped (timeout)\n");
  }
  return *status;
}

}  // namespace

int run_record(const RecordOptions& options) {
  keep_freed_memory();
  if (const auto configured = log::configure(options.log); !configured) {
    fmt::print(stderr, "backtrail: {}\n", wrong_log_levels(options.log));
    return 1;
  }
  if (options.recorder.traced && tracee::is_hardware(options.recorder.source)) {
    const tracee::SourceProbe probe =
        tracee::probe_source(options.recorder.source, tracee::this_machine());
    if (!probe.available) {
      fmt::print(stderr, "backtrail: {}: {}; --source cache works here\n",
                 tracee::to_string(probe.kind), probe.words());
      return kExitNothingRun;
    }
  }
  const auto outcome = run_recorded(options);
  if (!outcome) {
    return tracee::is_trace_refusal(outcome.error())
               ? run_without(outcome.error(), options)
               : cannot_start(outcome.error(), options.launch);
  }
  if (outcome->timed_out) return kExitTimedOut;
  if (outcome->end.kind == tracee::StopKind::kProcessSignalled) die_of(outcome->end.signal);
  return outcome->end.exit_code;
}

}  // namespace backtrail::server
