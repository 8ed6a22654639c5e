// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include <boost/json.hpp>

#include "decoder/corefile/past_code.hpp"
#include "decoder/export/call_names.hpp"
#include "decoder/export/call_stream.hpp"
#include "decoder/export/exports.hpp"
#include "decoder/export/thread_lanes.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/off_marks.hpp"
#include "decoder/report/report.hpp"
#include "decoder/report/report_rows.hpp"

namespace backtrail::decoder {
namespace {

std::string json_quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string{valid_utf8(text)});
}

/// Buffers small pieces of text.
class Pieces {
 public:
  explicit Pieces(const TextSink& sink) : sink_{sink} {}
  ~Pieces() { flush(); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  void put(std::string_view text) {
    text_ += text;
    constexpr std::size_t kMost = 1U << 16U;
    if (text_.size() >= kMost) flush();
  }

 private:
  void flush() {
    sink_(text_);
    text_.clear();
  }
  const TextSink& sink_;
  std::string text_;
};

/// Writes off-CPU times as instant events, and a falling counter whose value holds from each step
/// on.
void put_times(const TraceTimes& times, const CallStream& traced, std::uint64_t shift,
               const std::string& ids, const std::string& title, Pieces& out) {
  constexpr std::uint64_t kShortestOff = 100'000;
  for (const OffMark& off : off_marks(times, traced.first(), traced.records(), kShortestOff)) {
    out.put(fmt::format(
        R"(,{{"ph":"i","s":"t",{},"ts":{},"name":"{} {}","args":{{"ns":{},"back_before_end_ns":{}}}}})",
        ids, off.position + shift, off.preempted ? "preempted" : "waited", duration_text(off.ns),
        off.ns, off.before_end_ns));
  }
  const std::string name = json_quoted("ms before the end (at most), " + title);
  const auto& pins = times.times().pins;
  for (std::size_t i = 0; i < pins.size(); ++i) {
    const TimePin& pin = pins[i];
    if (i + 1 < pins.size() && pins[i + 1].latest == pin.latest) continue;
    if (pin.latest < traced.first() || pin.latest - traced.first() > traced.records()) continue;
    constexpr double kMillisecond = 1e6;
    out.put(fmt::format(R"(,{{"ph":"C",{},"ts":{},"name":{},"args":{{"ms":{:.6f}}}}})", ids,
                        pin.latest - traced.first() + shift, name,
                        static_cast<double>(times.times().until_ns - pin.end_ns) / kMillisecond));
  }
}

}  // namespace

void write_speedscope(const ExportSource& source, const TextSink& sink) {
  PastCode insns{source.archive, source.code};
  CallNames names{source.symbols};
  Pieces out{sink};
  out.put(fmt::format(R"({{"$schema":"https://www.speedscope.app/file-format-schema.json",)"
                      R"("exporter":"backtrail","name":{},"profiles":[)",
                      json_quoted(process_title(source, "unit: branches"))));
  bool first_thread = true;
  for (const ThreadLane& lane : thread_lanes(source)) {
    const CallStream traced{source, lane.tid, insns};
    out.put(fmt::format(
        R"({}{{"type":"evented","name":{},"unit":"none","startValue":0,"endValue":{},"events":[)",
        first_thread ? "" : ",", json_quoted(lane.title + traced.gaps().title()),
        traced.records() + 1));
    first_thread = false;
    bool first = true;
    const auto event = [&](char type, const Call& call, std::uint64_t at) {
      out.put(fmt::format(R"({}{{"type":"{}","frame":{},"at":{}}})", first ? "" : ",", type,
                          names.of(call), at));
      first = false;
    };
    traced.tell([&](const Call& call) { event('O', call, call.begin_position); },
                [&](const Call& call) { event('C', call, call.end_position); });
    out.put("]}");
  }
  out.put(R"(],"shared":{"frames":[)");
  bool first = true;
  for (const CallNames::Function& function : names.functions()) {
    out.put(fmt::format(R"({}{{"name":{})", first ? "" : ",", json_quoted(function.name)));
    if (function.line.file != 0) {
      out.put(fmt::format(R"(,"file":{},"line":{})",
                          json_quoted(source.symbols.text(function.line.file)),
                          function.line.line));
    }
    out.put("}");
    first = false;
  }
  out.put("]}}\n");
}

void write_trace_events(const ExportSource& source, const TextSink& sink) {
  PastCode insns{source.archive, source.code};
  CallNames names{source.symbols};
  std::vector<std::string> quoted_names;
  Pieces out{sink};
  const std::uint32_t pid = source.core.process().pid;
  const std::vector<ThreadLane> lanes = thread_lanes(source);
  // All traces end when the process died; they need not begin at the same time.
  std::uint64_t end = 0;
  for (const ThreadLane& lane : lanes) {
    const TraceArchive::Thread& trace = *source.archive.find(lane.tid);
    end = std::max(
        end, std::min(trace.records, source.branches + kBlockRecords) + trace.blocks.size() + 1);
  }
  out.put(fmt::format(R"({{"displayTimeUnit":"ns","otherData":{{"unit":"1 us = 1 branch"}},)"
                      R"("traceEvents":[{{"ph":"M","pid":{},"ts":0,"name":"process_name",)"
                      R"("args":{{"name":{}}}}})",
                      pid, json_quoted(process_title(source, "1 us = 1 branch"))));
  for (const ThreadLane& lane : lanes) {
    const CallStream traced{source, lane.tid, insns};
    const std::uint64_t shift = end - (traced.records() + 1);
    const std::string ids = fmt::format(R"("pid":{},"tid":{})", pid, lane.tid);
    out.put(fmt::format(R"(,{{"ph":"M",{},"ts":0,"name":"thread_name","args":{{"name":{}}}}})", ids,
                        json_quoted(lane.title + traced.gaps().title())));
    for (const GapCount::Gap& gap : traced.gaps().gaps()) {
      out.put(fmt::format(R"(,{{"ph":"i","s":"t",{},"ts":{},"name":{}}})", ids,
                          gap.position + shift, json_quoted("gap: " + gap_text(gap.record))));
    }
    const auto name_of = [&](const Call& call) -> const std::string& {
      const std::uint32_t number = names.of(call);
      for (std::size_t i = quoted_names.size(); i <= number; ++i) {
        quoted_names.push_back(json_quoted(names.functions()[i].name));
      }
      return quoted_names[number];
    };
    std::uint64_t last_end = 0;
    traced.tell(
        [&](const Call& call) {
          // Some viewers pair events of equal time by name, so a tail-called function must begin
          // after its predecessor ends. Eighths are exact in a double.
          const char* later = call.begin_position == last_end ? ".125" : "";
          out.put(fmt::format(R"(,{{"ph":"B",{},"ts":{}{},"name":{}}})", ids,
                              call.begin_position + shift, later, name_of(call)));
        },
        [&](const Call& call) {
          last_end = call.end_position;
          out.put(fmt::format(R"(,{{"ph":"E",{},"ts":{},"name":{}}})", ids,
                              call.end_position + shift, name_of(call)));
        });
    if (const auto times = source.archive.times(lane.tid)) {
      put_times(*times, traced, shift, ids, lane.title, out);
    }
    if (lane.died) {
      out.put(fmt::format(R"(,{{"ph":"i","s":"t",{},"ts":{},"name":{}}})", ids, end,
                          json_quoted(signal_name(source.core.threads().front().signal))));
    }
  }
  out.put("]}\n");
}

}  // namespace backtrail::decoder
