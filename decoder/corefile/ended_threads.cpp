// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/ended_threads.hpp"

#include <set>
#include <span>

namespace backtrail::decoder {
namespace {

TraceeAddr newest_place(const TraceArchive& archive, std::uint32_t tid) {
  TraceeAddr place;
  archive.visit(tid, 1, [&](std::span<const Record> records) { place = records.back().to; });
  return place;
}

}  // namespace

std::vector<CoreThread> ended_threads(const CoreFile& core, const TraceArchive& archive,
                                      std::size_t most) {
  std::set<std::uint32_t> seen;
  for (const CoreThread& thread : core.threads()) seen.insert(thread.tid);
  std::vector<CoreThread> out;
  const auto add = [&](std::uint32_t tid) {
    const TraceArchive::Thread* trace = archive.find(tid);
    if (out.size() == most || trace == nullptr || trace->records == 0) return;
    if (!seen.insert(tid).second) return;
    CoreThread thread;
    thread.tid = tid;
    thread.user.set_pc(newest_place(archive, tid));
    out.push_back(std::move(thread));
  };
  for (const TraceIndexEntry& entry : core.trace_index()) add(entry.tid);
  for (const auto& [tid, trace] : archive.threads()) add(tid);
  return out;
}

}  // namespace backtrail::decoder
