// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <boost/json.hpp>

#include "decoder/report/call_words.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/report/values_json.hpp"

namespace backtrail::decoder {
namespace {

namespace json = boost::json;

constexpr int kReportVersion = 1;

json::string text(std::string_view bytes) {
  return json::string{valid_utf8(bytes)};
}

/// Formats an address as text, because many JSON readers lose precision above 53 bits.
json::string address_text(TraceeAddr address) {
  return json::string{fmt::format("{:#x}", address.value())};
}

void add_line(json::object& out, const std::string& file, std::uint32_t line) {
  if (file.empty()) return;
  out["file"] = text(file);
  out["line"] = line;
}

json::array frames_json(const std::vector<ReportFrame>& frames) {
  json::array out;
  for (const ReportFrame& frame : frames) {
    json::object one;
    if (!frame.function.empty()) one["function"] = text(frame.function);
    add_line(one, frame.file, frame.line);
    if (frame.inlined) one["inlined"] = true;
    out.push_back(std::move(one));
  }
  return out;
}

json::object place_json(const ReportPlace& place, const std::string& instruction) {
  json::object out;
  out["address"] = address_text(place.address);
  if (!place.module_place.empty()) out["module"] = text(place.module_place);
  if (!instruction.empty()) out["instruction"] = text(instruction);
  out["frames"] = frames_json(place.frames);
  return out;
}

const char* name_of(RowKind kind) {
  switch (kind) {
    case RowKind::kCall:
      return "call";
    case RowKind::kInlined:
      return "inlined";
    case RowKind::kRepeat:
      return "repeat";
    case RowKind::kGap:
      return "gap";
    case RowKind::kOff:
      return "off-cpu";
    case RowKind::kRounds:
      return "rounds";
    case RowKind::kOmitted:
      return "omitted";
  }
  return "";
}

json::object row_json(const ReportRow& row) {
  json::object out;
  out["kind"] = name_of(row.kind);
  out["depth"] = row.level;
  if (!row.function.empty()) out["function"] = text(row.function);
  add_line(out, row.file, row.line);
  if (row.repeat != 1 || row.kind == RowKind::kOmitted) out["times"] = row.repeat;
  if (row.kind == RowKind::kRounds) {
    out["of"] = row.nested;
    out["calls"] = row.calls;
    out["end"] = name_of(row.end);
  } else if (row.nested != 1) {
    out["nested"] = row.nested;
  }
  if (row.kind == RowKind::kCall) {
    out["begin"] = name_of(row.begin);
    out["end"] = name_of(row.end);
    if (!row.from_stack) {
      out["from"] = row.begin_position;
      out["to"] = row.end_position;
    }
    if (row.began_before_end) {
      out["began_before_end_ns"] =
          json::array{row.began_before_end->earliest_ns, row.began_before_end->latest_ns};
    }
  }
  if (row.kind == RowKind::kOff) {
    out["why"] = row.off.preempted ? "preempted" : "waits";
    out["ns"] = row.off.ns;
    out["back_before_end_ns"] = row.off.before_end_ns;
  }
  if (row.from_stack) out["stack"] = true;
  if (row.context) out["context"] = true;
  if (row.kind == RowKind::kGap) out["gap"] = text(row.gap);
  return out;
}

json::object times_json(const OffSums& times) {
  json::object out;
  out["known_ns"] = times.known_ns;
  out["waits"] = times.waits;
  out["waited_ns"] = times.waited_ns;
  out["preemptions"] = times.preemptions;
  out["preempted_ns"] = times.preempted_ns;
  out["short"] = times.others;
  out["short_ns"] = times.others_ns;
  out["lost"] = times.lost;
  return out;
}

json::array rows_json(const std::vector<ReportRow>& rows) {
  json::array out;
  for (const ReportRow& row : rows) out.push_back(row_json(row));
  return out;
}

json::object interrupted_json(const ReportInterrupted& interrupted) {
  json::object out;
  out["at"] = place_json(interrupted.place, interrupted.instruction);
  out["returned"] = interrupted.returned;
  if (!interrupted.by.empty()) out["by"] = text(interrupted.by);
  if (interrupted.by_name) out["by_name"] = true;
  if (!interrupted.callers.empty()) out["callers"] = frames_json(interrupted.callers);
  out["earlier_rows"] = interrupted.earlier_rows;
  out["calls"] = rows_json(interrupted.rows);
  return out;
}

json::object thread_json(const ReportThread& thread) {
  json::object out;
  out["tid"] = thread.tid;
  if (!thread.name.empty()) out["name"] = text(thread.name);
  out["died"] = thread.died;
  if (thread.ended) {
    out["ended"] = true;
  } else {
    out["at"] = place_json(thread.place, thread.instruction);
  }
  if (thread.arrived) out["from"] = place_json(thread.from, thread.from_instruction);
  json::object branches;
  branches["recorded"] = thread.recorded;
  branches["lost"] = thread.lost + thread.lost_between + thread.missing;
  branches["lost_is_exact"] = thread.lost_is_exact && thread.lost_between_is_exact;
  branches["lost_in_gaps"] = thread.lost_between;
  branches["missing"] = thread.missing;
  branches["examined"] = thread.looked_at;
  out["branches"] = std::move(branches);
  out["calls_examined"] = thread.calls;
  out["earlier_rows"] = thread.earlier_rows;
  out["stack_complete"] = thread.stack_complete;
  if (!thread.stack_problem.empty()) out["stack_problem"] = text(thread.stack_problem);
  if (thread.times) out["times"] = times_json(*thread.times);
  if (thread.interrupted) out["interrupted"] = interrupted_json(*thread.interrupted);
  out["calls"] = rows_json(thread.rows);
  if (!thread.last_calls.empty()) add_calls_json(thread.last_calls, out);
  if (!thread.stack.frames.empty()) add_stack_json(thread.stack, out);
  return out;
}

}  // namespace

std::string report_json(const Report& report) {
  json::object out;
  out["format"] = "backtrail-report";
  out["version"] = kReportVersion;
  out["program"] = text(report.program);
  out["command"] = text(report.command);
  out["pid"] = report.pid;
  if (report.signal != 0) {
    json::object signal;
    signal["number"] = report.signal;
    signal["name"] = text(report.signal_name);
    signal["cause"] = text(report.cause);
    if (report.has_address) signal["address"] = address_text(report.address);
    out["signal"] = std::move(signal);
  }
  if (report.first_signal) {
    json::object first;
    first["number"] = report.first_signal->number;
    first["name"] = text(report.first_signal->name);
    first["cause"] = text(report.first_signal->cause);
    if (report.first_signal->address)
      first["address"] = address_text(*report.first_signal->address);
    out["first_signal"] = std::move(first);
  }
  if (!report.run.empty()) out["run"] = text(report.run);
  if (!report.ending.empty()) out["ending"] = text(report.ending);
  if (!report.signature.empty()) out["signature"] = text(report.signature);
  json::array notes;
  for (const std::string& note : report.notes) notes.push_back(text(note));
  out["notes"] = std::move(notes);
  json::array threads;
  for (const ReportThread& thread : report.threads) threads.push_back(thread_json(thread));
  out["threads"] = std::move(threads);
  return json::serialize(out) + "\n";
}

}  // namespace backtrail::decoder
