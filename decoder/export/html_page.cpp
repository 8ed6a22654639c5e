// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/html_page.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <boost/json.hpp>

#include "arch/base/markup.hpp"
#include "decoder/corefile/past_code.hpp"
#include "decoder/export/gap_count.hpp"
#include "decoder/export/page_data.hpp"
#include "decoder/export/page_parts.hpp"
#include "decoder/export/page_values.hpp"
#include "decoder/export/thread_lanes.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/off_marks.hpp"
#include "decoder/report/report_rows.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/report/stack_join.hpp"
#include "decoder/report/thread_calls.hpp"
#include "decoder/report/thread_stack.hpp"

namespace backtrail::decoder {
namespace {

namespace json = boost::json;

/// Default number of branches in a page.
constexpr std::uint64_t kPageBranches = 5'000'000;
/// Most ended threads that get a lane.
constexpr std::size_t kMostEnded = 100;
/// Shortest off-CPU time that lanes show, in nanoseconds.
constexpr std::uint64_t kShortestOff = 100'000;
/// Most bytes of source text in a page.
constexpr std::size_t kMostSource = 16U << 20U;

json::string text(std::string_view bytes) {
  return json::string{valid_utf8(bytes)};
}

/// Returns JSON that cannot end a script element.
std::string island(const json::value& value) {
  std::string out;
  for (const char c : json::serialize(value)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_escaped(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    if (const std::string_view entity = entity_of(c); !entity.empty()) {
      out += entity;
    } else {
      out += c;
    }
  }
  return out;
}

/// Returns true if a module belongs to the system.
bool is_system_library(std::string_view path) {
  constexpr std::array<std::string_view, 4> kFolders{"/lib/", "/lib64/", "/usr/lib/",
                                                     "/usr/lib64/"};
  return std::any_of(kFolders.begin(), kFolders.end(),
                     [&](std::string_view folder) { return path.starts_with(folder); });
}

json::object values_json(const PageValues& values) {
  json::object out;
  json::array variables;
  for (const auto& [function, name, type] : values.variables()) {
    variables.push_back({function, text(name), text(type)});
  }
  out["variables"] = std::move(variables);
  json::array texts;
  for (const std::string& value : values.texts()) texts.push_back(text(value));
  out["texts"] = std::move(texts);
  json::array places;
  for (const std::vector<std::uint64_t>& place : values.places()) {
    places.push_back(json::array(place.begin(), place.end()));
  }
  out["places"] = std::move(places);
  return out;
}

/// Block ids in fixed width: the block before each record, and the one before the end.
struct BlockColumn {
  std::vector<std::uint32_t> ids;

  [[nodiscard]] bool wide() const {
    return std::any_of(ids.begin(), ids.end(), [](std::uint32_t id) { return id > 0xffff; });
  }
  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    const std::size_t width = wide() ? 4 : 2;
    std::vector<std::uint8_t> out;
    out.reserve(ids.size() * width);
    for (const std::uint32_t id : ids) {
      for (std::size_t i = 0; i < width; ++i) out.push_back(static_cast<std::uint8_t>(id >> 8 * i));
    }
    return out;
  }
};

class PageWriter {
 public:
  PageWriter(const ExportSource& source, const Report& report, const PageOptions& options,
             const TextSink& sink)
      : source_{source},
        report_{report},
        options_{options},
        sink_{sink},
        insns_{source.archive, source.code},
        names_{source.symbols},
        code_{insns_.at_end(), source.symbols, names_} {}

  void write() {
    const std::string report = report_text(report_);
    sink_(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Backtrail</title>\n<style>\n");
    sink_(page_style);
    sink_("</style></head>\n<body>\n<noscript><pre>");
    sink_(html_escaped(report));
    sink_("</pre></noscript>\n");
    sink_(page_body);
    json::array threads;
    const std::vector<ThreadLane> lanes = thread_lanes(source_, kMostEnded);
    for (const ThreadLane& lane : lanes) {
      threads.push_back(write_thread(lane, room(lane, lanes.size()), threads.size()));
    }
    put_block("code", packed_base64(code_.write()));
    put_block("insns", packed_base64(code_.write_instructions()));
    json::array texts;
    for (const std::string& instruction : code_.texts()) texts.push_back(text(instruction));
    sink_("<script type=\"application/json\" id=\"texts\">");
    sink_(island(std::move(texts)));
    sink_("</script>\n");
    sink_("<script type=\"application/json\" id=\"meta\">");
    json::object about = meta(std::move(threads), report);
    if (!values_.empty()) about["values"] = std::move(values_);
    add_cause(lanes, about);
    sink_(island(std::move(about)));
    sink_("</script>\n<script>\n'use strict';\n(() => {\n");
    for (const std::string_view script : page_scripts) sink_(script);
    sink_("})();\n</script>\n</body></html>\n");
  }

 private:
  void put_block(const std::string& id, const std::string& content) {
    sink_(fmt::format("<script type=\"application/octet-stream\" id=\"{}\">", id));
    sink_(content);
    sink_("</script>\n");
  }

  /// Returns the number of branches for a thread; the thread that died gets the most.
  [[nodiscard]] std::uint64_t room(const ThreadLane& lane, std::size_t count) const {
    if (source_.branches != 0) return source_.branches;
    if (count == 1) return kPageBranches;
    return lane.died ? kPageBranches / 2 : kPageBranches / 2 / (count - 1) + 1;
  }

  /// Returns the calls of a thread's trace, with the callers found on its stack.
  ThreadCalls calls_of(const ThreadLane& lane, std::uint64_t most) {
    ThreadCalls traced = rebuild_calls(source_.archive, lane.tid, most, insns_, source_.symbols);
    const auto& threads = source_.core.threads();
    const auto thread = std::find_if(threads.begin(), threads.end(),
                                     [&](const CoreThread& one) { return one.tid == lane.tid; });
    if (thread == threads.end()) return traced;
    const JoinedStack joined =
        join_stack(thread_stack(source_.core, source_.code, source_.symbols, *thread, traced),
                   traced, insns_.at_end(), source_.symbols);
    for (std::size_t i = joined.first; i < joined.first + joined.count; ++i) {
      // Callers without a traced callee have no end yet.
      std::uint64_t& end = traced.calls[i].end_position;
      if (end == 0) end = traced.records + 1;
    }
    return traced;
  }

  json::object write_thread(const ThreadLane& lane, std::uint64_t most, std::size_t number) {
    const ThreadCalls traced = calls_of(lane, most);
    const BlockColumn blocks = blocks_of(lane, most);
    put_block(fmt::format("calls{}", number),
              packed_base64(page_calls(traced.calls, names_, code_)));
    put_block(fmt::format("blocks{}", number), packed_base64(blocks.bytes()));
    json::object out;
    const TraceArchive::Thread& trace = *source_.archive.find(lane.tid);
    out["title"] = text(lane.title);
    out["tid"] = lane.tid;
    if (traced.records < trace.records || trace.lost != 0) {
      out["note"] =
          fmt::format("the last {} of {} branches", traced.records, trace.records + trace.lost);
    }
    out["died"] = lane.died;
    out["place"] = text(source_.symbols.module_place(lane.pc));
    json::array gaps;
    for (const GapMark& gap : traced.gaps) {
      gaps.push_back({gap.position, text(gap_text(gap.record))});
    }
    out["gaps"] = std::move(gaps);
    out["wide"] = blocks.wide();
    if (options_.values != nullptr && !report_.threads.empty() &&
        lane.tid == report_.threads.front().tid) {
      PageValues values{*options_.values, source_.symbols, code_, names_};
      values.read(lane, blocks.ids);
      values_ = values_json(values);
    }
    if (const auto times = source_.archive.times(lane.tid)) add_times(*times, traced, out);
    return out;
  }

  /// Adds off-CPU times and pins, in nanoseconds and branches.
  /// `off`: place, length, 1 if preempted, time from its end to the thread's end.
  /// `pins`: time from the sample's begin and end to the thread's end, lowest and highest place; -1
  /// is before the page begins.
  static void add_times(const TraceTimes& times, const ThreadCalls& traced, json::object& out) {
    json::array off;
    for (const OffMark& mark : off_marks(times, traced.first, traced.records, kShortestOff)) {
      if (mark.position < traced.numbered_from()) continue;
      off.push_back({mark.position, mark.ns, mark.preempted ? 1 : 0, mark.before_end_ns});
    }
    out["off"] = std::move(off);
    json::array pins;
    const std::uint64_t end = times.times().until_ns;
    for (const TimePin& pin : times.times().pins) {
      if (pin.latest < traced.first + traced.numbered_from()) continue;
      const auto place = [&](std::uint64_t records) {
        return static_cast<std::int64_t>(records) - static_cast<std::int64_t>(traced.first);
      };
      pins.push_back({end - pin.begin_ns, end - pin.end_ns,
                      std::max<std::int64_t>(-1, place(pin.earliest)), place(pin.latest)});
    }
    out["pins"] = std::move(pins);
    out["since"] = end - times.times().since_ns;
  }

  BlockColumn blocks_of(const ThreadLane& lane, std::uint64_t most) {
    BlockColumn out;
    CodeHistory* past = insns_.of(lane.tid);
    TraceeAddr begin;
    std::uint64_t newest = 0;
    const auto take = [&](std::span<const Record> records, std::uint64_t end) {
      newest = end - std::min<std::uint64_t>(end, records.size() + 1);
      for (const Record& record : records) {
        const bool known = begin != TraceeAddr{} && record.from != TraceeAddr{};
        const PageCode::Stretch stretch{begin, record.from, record.kind == RecordKind::kBranch};
        out.ids.push_back(known ? code_.block(stretch, past, newest) : 0);
        begin = record.to;
        ++newest;
      }
    };
    source_.archive.visit_numbered(lane.tid, most, take);
    // The last block, up to the end; includes the faulting instruction.
    const PageCode::Stretch last{begin, lane.pc, true, true};
    out.ids.push_back(begin == TraceeAddr{} ? 0 : code_.block(last, past, newest));
    return out;
  }

  json::array sources() {
    json::array out;
    std::size_t total = 0;
    for (const PageCode::File& entry : code_.files()) {
      const std::string& path = source_.symbols.text(entry.text);
      json::object file;
      file["path"] = text(path);
      const CoreMapping* module = source_.core.mapping_at(entry.address);
      if (module != nullptr && is_system_library(module->path)) file["system"] = true;
      if (total < kMostSource) {
        const std::string content = read_source(path, options_.roots);
        total += content.size();
        if (!content.empty()) file["text"] = text(content);
      }
      out.push_back(std::move(file));
    }
    return out;
  }

  /// Adds the cause, the report's first thread: `open` is its lane, `by` the function that it
  /// called when it failed, if the report names one.
  void add_cause(const std::vector<ThreadLane>& lanes, json::object& out) const {
    if (report_.threads.empty()) return;
    const ReportThread& thread = report_.threads.front();
    const auto lane = std::find_if(lanes.begin(), lanes.end(),
                                   [&](const ThreadLane& one) { return one.tid == thread.tid; });
    if (lane == lanes.end()) return;
    out["open"] = static_cast<std::uint64_t>(lane - lanes.begin());
    if (thread.interrupted && !thread.interrupted->by.empty()) {
      out["by"] = text(printable(thread.interrupted->by));
    }
  }

  json::object meta(json::array threads, const std::string& report) {
    json::object out;
    out["title"] = text(fmt::format("{} ({})", report_.program, report_.pid));
    out["cause"] = text(report_.signal == 0 || !report_.ending.empty()
                            ? report_.ending
                            : fmt::format("{}: {}", report_.signal_name, report_.cause));
    out["text"] = text(report);
    json::array names;
    for (const CallNames::Function& function : names_.functions()) {
      names.push_back(text(printable(function.name)));
    }
    out["names"] = std::move(names);
    out["files"] = sources();
    out["threads"] = std::move(threads);
    return out;
  }

  const ExportSource& source_;
  const Report& report_;
  const PageOptions& options_;
  const TextSink& sink_;
  PastCode insns_;
  CallNames names_;
  PageCode code_;
  json::object values_;  ///< The variables of the report's first thread, whose lane is `open`.
};

}  // namespace

void write_page(const ExportSource& source, const Report& report, const PageOptions& options,
                const TextSink& sink) {
  PageWriter{source, report, options, sink}.write();
}

}  // namespace backtrail::decoder
