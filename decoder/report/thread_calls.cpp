#include "decoder/report/thread_calls.hpp"

#include <algorithm>
#include <span>

#include "decoder/calls/call_rebuilder.hpp"

namespace backtrail::decoder {

std::uint64_t first_record(const TraceArchive& archive, std::uint32_t tid, std::uint64_t records) {
  const TraceArchive::Thread* thread = archive.find(tid);
  if (thread == nullptr || thread->blocks.empty()) return 0;
  // Counted from the end: missing blocks stand as single gaps.
  const TraceBlock& newest = thread->blocks.back();
  const std::uint64_t end = newest.first + newest.records;
  return end - std::min(end, records);
}

ThreadCalls rebuild_calls(const TraceArchive& archive, std::uint32_t tid, std::uint64_t most,
                          InsnCache& insns, CodeMap& code) {
  ThreadCalls out;
  CallRebuilder rebuilder{insns, code};
  archive.visit(tid, most, [&](std::span<const Record> records) {
    for (const Record& record : records) {
      ++out.records;
      if (record.kind == RecordKind::kGap && out.records != 1) {
        out.gaps.push_back({record, out.records});
      }
    }
    rebuilder.feed(records);
    if (!records.empty()) out.last = records.back();
  });
  if (out.records != 0) out.first = first_record(archive, tid, out.records);
  out.calls = rebuilder.finish();
  drop_lazy_binding(out.calls, code);
  return out;
}

}  // namespace backtrail::decoder
