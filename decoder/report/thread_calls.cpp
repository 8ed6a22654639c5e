#include "decoder/report/thread_calls.hpp"

#include <algorithm>
#include <span>

#include "decoder/calls/call_rebuilder.hpp"

namespace backtrail::decoder {
namespace {

/// Takes out what the dynamic linker called to find a function: it is no work of the program.
void drop_lazy_binding(std::vector<Call>& calls, CodeMap& code) {
  constexpr std::size_t kDropped = kNoCall - 1;
  std::vector<std::size_t> place(calls.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Call call = calls[i];
    const std::size_t parent = call.parent;
    const bool binding = call.begin == CallBegin::kCalled && call.end == CallEnd::kReturned &&
                         code.at(call.site).stub;
    if (binding || (parent != kNoCall && place[parent] == kDropped)) {
      place[i] = kDropped;
      continue;
    }
    if (parent != kNoCall) call.parent = place[parent];
    place[i] = kept;
    calls[kept++] = call;
  }
  calls.resize(kept);
}

}  // namespace

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
  if (const TraceArchive::Thread* thread = archive.find(tid); out.records != 0) {
    // Counted from the end: missing blocks stand as single gaps.
    const TraceBlock& newest = thread->blocks.back();
    const std::uint64_t end = newest.first + newest.records;
    out.first = end - std::min(end, out.records);
  }
  out.calls = rebuilder.finish();
  drop_lazy_binding(out.calls, code);
  return out;
}

}  // namespace backtrail::decoder
