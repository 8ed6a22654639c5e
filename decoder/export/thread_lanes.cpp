#include "decoder/export/thread_lanes.hpp"

#include <fmt/format.h>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

std::vector<ThreadLane> thread_lanes(const ExportSource& source) {
  std::vector<ThreadLane> out;
  for (const CoreThread& thread : source.core.threads()) {
    const TraceArchive::Thread* trace = source.archive.find(thread.tid);
    if (trace == nullptr || trace->records == 0) continue;
    const bool died = &thread == &source.core.threads().front() && thread.signal != 0;
    out.push_back(
        {thread.tid, fmt::format("{} {}", trace->name, thread.tid), thread.user.pc(), died});
  }
  return out;
}

std::string process_title(const ExportSource& source, std::string_view unit) {
  const CoreProcess& process = source.core.process();
  return fmt::format("{} ({}): {}; {}", process.name, process.pid,
                     signal_name(source.core.threads().front().signal), unit);
}

}  // namespace backtrail::decoder
