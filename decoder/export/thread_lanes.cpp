// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/thread_lanes.hpp"

#include <fmt/format.h>

#include "decoder/corefile/ended_threads.hpp"
#include "decoder/report/report.hpp"

namespace backtrail::decoder {

std::vector<ThreadLane> thread_lanes(const ExportSource& source, std::size_t most_ended) {
  std::vector<ThreadLane> out;
  for (const CoreThread& thread : source.core.threads()) {
    const TraceArchive::Thread* trace = source.archive.find(thread.tid);
    if (trace == nullptr || trace->records == 0) continue;
    const bool died = &thread == &source.core.threads().front() && thread.signal != 0;
    out.push_back(
        {thread.tid, fmt::format("{} {}", trace->name, thread.tid), thread.user.pc(), died});
  }
  for (const CoreThread& thread : ended_threads(source.core, source.archive, most_ended)) {
    const TraceArchive::Thread* trace = source.archive.find(thread.tid);
    out.push_back({.tid = thread.tid,
                   .title = fmt::format("{} {} (ended)", trace->name, thread.tid),
                   .pc = thread.user.pc(),
                   .ended = true});
  }
  return out;
}

std::string process_title(const ExportSource& source, std::string_view unit) {
  const CoreProcess& process = source.core.process();
  return fmt::format("{} ({}): {}; {}", process.name, process.pid,
                     signal_name(source.core.threads().front().signal), unit);
}

}  // namespace backtrail::decoder
