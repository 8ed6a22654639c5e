// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_traces.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "decoder/corefile/ended_threads.hpp"
#include "decoder/corefile/trace_check.hpp"
#include "ptrace/trace/thread_trace.hpp"

namespace backtrail::server {
namespace {

using decoder::BtsHistory;
using decoder::PtHistory;
using tracee::TraceConfig;
using tracee::TraceFormat;

std::uint64_t detail(ThreadId thread) {
  return static_cast<std::uint64_t>(thread.tid);
}

/// Most ended threads that are listed, the newest first: a debugger reads the registers of each.
constexpr std::size_t kMostEnded = 1024;

/// Returns a number of records that is enough to fill a history of the configured size.
std::uint64_t records_for(const TraceConfig& config) {
  constexpr std::uint64_t kBranchesInPtByte = 8;
  return config.format == TraceFormat::kBts ? config.size_bytes / sizeof(decoder::Record) + 1
                                            : config.size_bytes * kBranchesInPtByte;
}

}  // namespace

CoreTraces::CoreTraces(const decoder::CoreFile& core, tracee::ProgramMemory& memory)
    : core_{core},
      archive_{core},
      ended_{decoder::ended_threads(core, archive_, kMostEnded)},
      insns_{memory} {}

const decoder::CoreThread* CoreTraces::find(ThreadId thread) const {
  for (const auto* threads : {&core_.threads(), &ended_}) {
    const auto found = std::find_if(threads->begin(), threads->end(), [&](const auto& known) {
      return known.tid == static_cast<std::uint32_t>(thread.tid);
    });
    if (found != threads->end()) return &*found;
  }
  return nullptr;
}

Result<void> CoreTraces::enable(ThreadId thread, TraceConfig wanted) {
  const decoder::CoreThread* found = find(thread);
  if (found == nullptr) return fail(TraceErrc::kNotFound, "enable", detail(thread));
  if (enabled_.contains(thread.tid)) {
    return fail(TraceErrc::kAlreadyEnabled, "enable", detail(thread));
  }
  const TraceConfig config{wanted.format, tracee::granted_buffer_size(wanted.size_bytes)};
  const TraceeAddr pc = found->user.pc();
  std::vector<decoder::Record> records = archive_.load(found->tid, records_for(config));
  if (records.empty()) records = {decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, pc)};
  if (config.format == TraceFormat::kBts) {
    BtsHistory history{insns_, config.size_bytes};
    history.consume(records);
    enabled_.emplace(thread.tid, Enabled{config, pc, std::move(history)});
  } else {
    PtHistory history{insns_, config.size_bytes};
    history.consume(records);
    enabled_.emplace(thread.tid, Enabled{config, pc, std::move(history)});
  }
  return {};
}

Result<void> CoreTraces::disable(ThreadId thread) {
  if (enabled_.erase(thread.tid) == 0) {
    return fail(TraceErrc::kNotEnabled, "disable", detail(thread));
  }
  return {};
}

std::optional<TraceConfig> CoreTraces::config(ThreadId thread) {
  const auto found = enabled_.find(thread.tid);
  if (found == enabled_.end()) return std::nullopt;
  return found->second.config;
}

Result<TraceDocument> CoreTraces::read(ThreadId thread, TraceRead what) {
  const auto found = enabled_.find(thread.tid);
  if (found == enabled_.end()) return fail(TraceErrc::kNotEnabled, "read", detail(thread));
  Enabled& trace = found->second;
  const bool first = !std::exchange(trace.read, true);
  if (auto* pt = std::get_if<PtHistory>(&trace.history)) {
    if (what == TraceRead::kDelta) return fail(TraceErrc::kUnsupported, "read PT delta");
    if (what == TraceRead::kNew && !pt->changed(trace.pc)) return TraceDocument{PtTrace{}};
    return TraceDocument{PtTrace{pt->read_all(trace.pc)}};
  }
  auto& bts = std::get<BtsHistory>(trace.history);
  switch (what) {
    case TraceRead::kAll:
      return TraceDocument{bts.read_all(trace.pc)};
    case TraceRead::kNew:
      return TraceDocument{bts.read_new(trace.pc)};
    case TraceRead::kDelta:
      break;
  }
  // gdb begins with a delta although it has only the pc. Told that the new part does not connect,
  // it reads everything.
  if (first) return fail(TraceErrc::kOverflow, "read the first delta", detail(thread));
  BT_TRY(std::vector<decoder::Block> blocks, bts.read_delta(trace.pc));
  return TraceDocument{std::move(blocks)};
}

std::string CoreTraces::describe() {
  std::string text;
  const auto has_ended = [this](std::uint32_t tid) {
    return std::any_of(ended_.begin(), ended_.end(),
                       [=](const decoder::CoreThread& thread) { return thread.tid == tid; });
  };
  const auto checks = decoder::check_traces(archive_);
  for (const auto& [tid, thread] : archive_.threads()) {
    const decoder::ThreadCheck& check = checks.at(tid);
    text += fmt::format("thread {}{}: {} branches from the crash file, {}{} older ones not kept",
                        tid, has_ended(tid) ? " (ended)" : "", check.branches,
                        thread.lost_is_exact ? "" : "at least ", thread.lost);
    if (check.lost_between != 0 || !check.lost_is_exact) {
      text += fmt::format(", {}{} lost in gaps", check.lost_is_exact ? "" : "at least ",
                          check.lost_between);
    }
    if (check.missing != 0) text += fmt::format(", {} damaged or missing", check.missing);
    text += "\n";
  }
  return text.empty() ? "the core has no trace in it\n" : text;
}

}  // namespace backtrail::server
