// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/source_check.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/engine/engine.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "server/doctor/file_places.hpp"
#include "server/doctor/known_program.hpp"
#include "server/portable/own_program.hpp"

namespace backtrail::server {
namespace {

using decoder::GapReason;
using decoder::Record;
using decoder::RecordKind;
using tracee::StopKind;
using tracee::ThreadId;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLongestRun{30};
/// More branches than the known program executes.
constexpr std::uint64_t kHistoryBytes = 16U << 20U;

class Collector : public decoder::TraceConsumer {
 public:
  void consume(std::span<const Record> records) override {
    for (const Record& record : records) {
      if (record.reason != GapReason::kStart) all.push_back(record);
    }
  }
  std::vector<Record> all;
};

/// Process of the known program, from launch to end.
class KnownProcess {
 public:
  explicit KnownProcess(tracee::SourceKind source) : engine_{source} {}

  Result<KnownRun> run() {
    const KnownSpan own_span = known_span();
    BT_TRY(const OwnProgram own, own_program(own_span.begin));
    tracee::LaunchSpec spec;
    spec.program = own.executable;
    spec.arguments = own.prefix;
    spec.arguments.insert(spec.arguments.end(), {"doctor", "--known-program"});
    spec.through_shell = false;
    BT_TRY(const pid_t pid, engine_.launch(spec));
    id_ = {pid, pid};
    BT_CHECKED(run_until(StopKind::kSignal));
    BT_TRY(const TraceeAddr here, place_of(::getpid(), own.file));
    BT_TRY(const TraceeAddr there, place_of(pid, own.file));
    const std::uint64_t moved = there - here;
    const KnownSpan span{own_span.begin + moved, own_span.end + moved};
    BT_CHECKED(run_to(span.begin));

    BT_CHECKED(engine_.enable_trace(
        id_, {.format = tracee::TraceFormat::kBts, .size_bytes = kHistoryBytes}));
    tracee::Thread* thread = engine_.find(id_);
    if (thread == nullptr || !thread->trace()) return gone();
    Collector collector;
    thread->trace()->hub().add(collector, span.begin);
    const auto begin = Clock::now();
    BT_CHECKED(run_to(span.end));
    KnownRun out;
    out.time = Clock::now() - begin;
    thread->trace()->flush();
    thread->trace()->hub().remove(collector);
    out.records = std::move(collector.all);
    const tracee::ProcFs proc;
    BT_TRY(const std::vector<tracee::MapEntry> theirs, proc.maps(pid));
    BT_TRY(const std::vector<tracee::MapEntry> ours, proc.maps(::getpid()));
    FilePlaces{theirs, ours}.translate(out.records);
    return out;
  }

 private:
  [[nodiscard]] static tl::unexpected<Error> gone() {
    return fail(TraceErrc::kTraceeGone, "run the known program");
  }

  Result<void> run_to(TraceeAddr address) {
    const tracee::BreakpointSpec stop{.address = address};
    BT_CHECKED(engine_.insert(id_.pid, stop));
    BT_CHECKED(run_until(StopKind::kSoftwareBreakpoint));
    return engine_.remove(id_.pid, stop);
  }

  Result<void> run_until(StopKind stop) {
    const std::pair<ThreadId, tracee::ResumeAction> order{id_, {}};
    BT_CHECKED(engine_.resume(std::span{&order, 1}));
    const auto deadline = Clock::now() + kLongestRun;
    while (Clock::now() < deadline) {
      engine_.pump(-1);
      if (const auto event = engine_.take_event()) {
        if (event->kind != stop) return gone();
        return {};
      }
      constexpr int kLookAgainMs = 100;
      pollfd waited{engine_.event_fd(), POLLIN, 0};
      ::poll(&waited, 1, kLookAgainMs);
    }
    return gone();
  }

  tracee::Engine engine_;
  ThreadId id_{};
};

bool is_branch(const Record& record) {
  return record.kind == RecordKind::kBranch;
}

std::string branch_text(const Record& record) {
  return fmt::format("{:#x} -> {:#x}", record.from.value(), record.to.value());
}

SourceCheck compare_stretches(std::span<const Record> step, std::span<const Record> records) {
  SourceCheck out;
  std::size_t branches = 0;
  std::size_t stretches = 0;
  auto from = step.begin();
  for (auto at = records.begin(); at != records.end();) {
    at = std::find_if(at, records.end(), is_branch);
    const auto end = std::find_if_not(at, records.end(), is_branch);
    if (at == end) break;
    const auto found = std::search(from, step.end(), at, end);
    if (found == step.end()) {
      out.words = fmt::format("differs: {} and {} more do not follow each other under step",
                              branch_text(*at), end - at - 1);
      return out;
    }
    branches += static_cast<std::size_t>(end - at);
    ++stretches;
    from = found + (end - at);
    at = end;
  }
  out.equal = true;
  out.words =
      fmt::format("right in {} of {} branches, in {} stretches", branches, step.size(), stretches);
  return out;
}

}  // namespace

Result<KnownRun> record_known_program(tracee::SourceKind source) {
  return KnownProcess{source}.run();
}

SourceCheck compare_with_step(tracee::SourceKind source, std::span<const Record> step,
                              std::span<const Record> records) {
  if (source == tracee::SourceKind::kLbr) return compare_stretches(step, records);
  SourceCheck out;
  const auto [expected, actual] =
      std::mismatch(step.begin(), step.end(), records.begin(), records.end());
  if (expected == step.end() && actual == records.end()) {
    out.equal = true;
    out.words = fmt::format("equal in all {} branches", step.size());
    return out;
  }
  const auto gaps = std::count_if(records.begin(), records.end(),
                                  [](const Record& record) { return !is_branch(record); });
  out.words = fmt::format(
      "differs at branch {} of {}: {}; {}, {} gaps in all", expected - step.begin() + 1,
      step.size(), expected == step.end() ? "step has no more" : "step " + branch_text(*expected),
      actual == records.end() ? "it has no more" : "it " + branch_text(*actual), gaps);
  return out;
}

}  // namespace backtrail::server
