// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/report_text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "decoder/report/clean_text.hpp"
#include "decoder/report/shown_rows.hpp"
#include "decoder/report/values_text.hpp"

namespace backtrail::decoder {
namespace {

/// Largest level that is indented further.
constexpr std::uint32_t kMostIndent = 40;
/// Most threads that are shown in full. More threads are grouped, and this many groups are shown in
/// full.
constexpr std::size_t kFewThreads = 8;
/// Most thread ids in a line.
constexpr std::size_t kMostIds = 12;
/// Most callers in a summary.
constexpr std::size_t kFewCallers = 9;

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string line_text(const std::string& file, std::uint32_t line) {
  if (file.empty()) return {};
  return fmt::format("{}:{}", printable(base_name(file)), line);
}

std::string frame_text(const ReportFrame& frame, const ReportPlace& place) {
  std::string name = printable(frame.function.empty() ? place.module_place : frame.function);
  if (name.empty()) name = "unknown code";
  const std::string line = line_text(frame.file, frame.line);
  return line.empty() ? name : name + " " + line;
}

/// Formats a place: "main x.c:3 (0x55...): mov ..., inlined in ...".
std::string place_text(const ReportPlace& place, const std::string& instruction) {
  std::string out;
  for (const ReportFrame& frame : place.frames) {
    out += (out.empty() ? "" : ", inlined in ") + frame_text(frame, place);
  }
  out += fmt::format(" ({:#x}{})", place.address.value(),
                     place.module_place.empty() || place.frames.front().function.empty()
                         ? ""
                         : " = " + printable(place.module_place));
  out += instruction.empty() ? ": instruction unreadable" : ": " + printable(instruction);
  return out;
}

std::string call_text(const ReportRow& row) {
  std::string out = printable(row.function);
  if (const std::string line = line_text(row.file, row.line); !line.empty()) out += "  " + line;
  if (row.repeat > 1) out += fmt::format("  x {}", grouped(row.repeat));
  if (row.nested > 1) out += fmt::format("  recursive, {} deep", grouped(row.nested));
  if (row.begin == CallBegin::kTailCalled) out += "  (tail call)";
  if (row.begin == CallBegin::kSignal) out += "  (signal handler)";
  if (row.from_stack) out += "  (from the stack)";
  if (row.begin == CallBegin::kResumed) out += "  (resumed on its stack)";
  if (row.end == CallEnd::kUnwound) out += "  (left by an exception or longjmp)";
  if (row.end == CallEnd::kSwitched) out += "  (suspended by a stack switch)";
  if (row.end == CallEnd::kGap) out += "  (end not recorded)";
  return out;
}

std::string off_text(const ReportRow& row) {
  std::string out = fmt::format("... {} for {}", row.off.preempted ? "preempted" : "waited",
                                duration_text(row.off.ns));
  if (row.repeat > 1) out += fmt::format(", {} times", grouped(row.repeat));
  return out + fmt::format(", until {} before the end", duration_text(row.off.before_end_ns));
}

std::string rounds_text(const ReportRow& row) {
  const bool others = row.calls != row.repeat * row.nested;
  return fmt::format("... {} more rounds of {}{} ...{}", grouped(row.repeat),
                     printable(row.function),
                     others ? fmt::format(", {} calls in all", grouped(row.calls)) : "",
                     row.from_stack ? "  (from the stack)" : "");
}

std::string row_text(const ReportRow& row) {
  const bool calls = row.kind == RowKind::kCall || row.kind == RowKind::kRounds;
  const bool open = calls && row.end == CallEnd::kOpen;
  std::string out = open ? "  > " : "    ";
  out.append(std::size_t{2} * std::min(row.level, kMostIndent), ' ');
  switch (row.kind) {
    case RowKind::kCall:
      return out + call_text(row) + "\n";
    case RowKind::kInlined:
      return out + printable(row.function) + "  " + line_text(row.file, row.line) + "  (inlined)\n";
    case RowKind::kRepeat:
      return out + fmt::format("{} times:\n", grouped(row.repeat));
    case RowKind::kGap:
      return out + "--- " + row.gap + " ---\n";
    case RowKind::kOff:
      return out + off_text(row) + "\n";
    case RowKind::kRounds:
      return out + rounds_text(row) + "\n";
    case RowKind::kOmitted:
      return out + fmt::format("... {} more callers ...\n", grouped(row.repeat));
  }
  return out;
}

std::string trace_line(const ReportThread& thread) {
  if (thread.recorded == 0 && thread.missing == 0) return "  no branches were recorded\n";
  std::string out = fmt::format("  last calls: {} in ", grouped(thread.calls));
  if (thread.looked_at < thread.recorded) {
    out += fmt::format("the last {} of {} recorded branches", grouped(thread.looked_at),
                       grouped(thread.recorded));
  } else {
    out += fmt::format("{} recorded branches", grouped(thread.recorded));
  }
  if (thread.lost != 0) {
    out += fmt::format("; {}{} older branches were not kept",
                       thread.lost_is_exact ? "" : "at least ", grouped(thread.lost));
  }
  if (thread.lost_between != 0) {
    out += fmt::format("; {}{} were lost in gaps", thread.lost_between_is_exact ? "" : "at least ",
                       grouped(thread.lost_between));
  } else if (!thread.lost_between_is_exact) {
    out += "; an unknown number were lost in gaps";
  }
  if (thread.missing != 0) {
    out += fmt::format("; {} are damaged or missing in the file", grouped(thread.missing));
  }
  return out + "\n";
}

std::string times_line(const ReportThread& thread) {
  if (!thread.times) return {};
  const OffSums& times = *thread.times;
  std::string off;
  const auto add = [&off](const char* what, std::uint64_t count, std::uint64_t ns) {
    if (count == 0) return;
    off += fmt::format("{} {} {} time{} ({})", off.empty() ? "" : ",", what, grouped(count),
                       count == 1 ? "" : "s", duration_text(ns));
  };
  add("waited", times.waits, times.waited_ns);
  add("preempted", times.preemptions, times.preempted_ns);
  add("briefly off the CPU", times.others, times.others_ns);
  if (off.empty()) off = " always on the CPU";
  std::string out = fmt::format("  last {}:{}", duration_text(times.known_ns), off);
  if (times.lost != 0) out += fmt::format("; {} marks were lost", grouped(times.lost));
  return out + "\n";
}

std::string title(const Report& report) {
  std::string out =
      fmt::format("{} (process {})", report.program.empty() ? "program" : printable(report.program),
                  report.pid);
  if (!report.ending.empty()) return out + " " + report.ending;
  if (report.signal == 0) return out + " was saved";
  out += " died of " + report.signal_name;
  if (report.first_signal) {
    const ReportSignal& first = *report.first_signal;
    const bool again = first.name == report.signal_name;
    if (!again) out += ", raised in the handler of " + first.name;
    if (!first.cause.empty()) out += ": " + first.cause;
    return again ? out + "; its handler raised it again" : out;
  }
  return report.cause.empty() ? out : out + ": " + report.cause;
}

std::string thread_title(const ReportThread& thread) {
  std::string out = fmt::format("thread {}", thread.tid);
  if (!thread.name.empty()) out += fmt::format(" \"{}\"", printable(thread.name));
  if (thread.ended) return out + " (ended)";
  return out + (thread.died ? " died" : "");
}

/// @param most_callers  0 for all.
std::string rows_text(std::uint64_t earlier, const std::vector<ReportRow>& rows,
                      std::size_t most_callers) {
  ShownRows shown = without_start_up(rows);
  if (most_callers != 0) shown.rows = with_few_callers(std::move(shown.rows), most_callers);
  std::string out;
  if (earlier != 0) {
    out += fmt::format("    ... {} earlier ...\n", grouped(earlier + shown.start_up));
  } else if (shown.start_up != 0) {
    out += fmt::format("    ... {} of the start-up ...\n", grouped(shown.start_up));
  }
  for (const ReportRow& row : shown.rows) out += row_text(row);
  return out;
}

/// Returns "and 12 more threads in the same calls: 7 8 9".
std::string others_text(const Report& report, const ThreadGroup& group) {
  const std::size_t others = group.threads.size() - 1;
  if (others == 0) return {};
  std::string out =
      fmt::format("and {} more thread{} in the same calls:", others, others == 1 ? "" : "s");
  for (std::size_t i = 1; i < std::min(group.threads.size(), kMostIds + 1); ++i) {
    out += fmt::format(" {}", report.threads[group.threads[i]].tid);
  }
  return out + (others > kMostIds ? " ..." : "");
}

/// Describes a thread in a line: where it is, and its innermost open calls.
std::string thread_line(const ReportThread& thread) {
  constexpr std::size_t kMostCallers = 3;
  std::string out = thread_title(thread);
  if (thread.ended) {
    if (thread.interrupted && !thread.interrupted->by.empty()) {
      out += thread.interrupted->by_name ? ", whose last call with the name of a failure was "
                                         : ", after ";
      out += printable(thread.interrupted->by);
    }
    return out + "\n";
  }
  out += " is in ";
  out += thread.place.frames.empty() ? "unknown code"
                                     : frame_text(thread.place.frames.front(), thread.place);
  std::size_t callers = 0;
  bool is_innermost = true;
  for (auto row = thread.rows.rbegin(); row != thread.rows.rend() && callers < kMostCallers;
       ++row) {
    if (row->kind != RowKind::kCall || row->end != CallEnd::kOpen) continue;
    if (!std::exchange(is_innermost, false)) {
      out += " < " + printable(row->function);
      ++callers;
    }
  }
  return out + "\n";
}

/// Returns "after CALL, called at PLACE", with the callers of that place.
std::string failure_text(const ReportInterrupted& failure) {
  std::string out =
      fmt::format("  {} {}, called at {}\n",
                  failure.by_name ? "last call with the name of a failure:" : "after",
                  printable(failure.by), place_text(failure.place, failure.instruction));
  std::string callers;
  for (const ReportFrame& frame : failure.callers) {
    callers += (callers.empty() ? "" : ", ") + printable(frame.function);
    if (const std::string line = line_text(frame.file, frame.line); !line.empty()) {
      callers += " " + line;
    }
  }
  return callers.empty() ? out : out + "    called from " + callers + "\n";
}

std::string thread_text(const Report& report, const ReportThread& thread,
                        std::size_t most_callers = 0) {
  std::string out = thread_title(thread) + "\n";
  if (!thread.ended) out += "  at " + place_text(thread.place, thread.instruction) + "\n";
  const bool lost = !thread.ended && thread.place.frames.front().function.empty();
  if (thread.arrived && lost) {
    out += "  from " + place_text(thread.from, thread.from_instruction) + "\n";
  }
  if (thread.interrupted && !thread.interrupted->by.empty()) {
    out += failure_text(*thread.interrupted);
  } else if (thread.interrupted && !thread.interrupted->returned) {
    out += "  in a signal handler, which interrupted " +
           place_text(thread.interrupted->place, thread.interrupted->instruction) + "\n";
  }
  if (thread.interrupted && thread.interrupted->returned) {
    out += "  after a signal handler, which ran here and returned\n";
  }
  out += times_line(thread) + trace_line(thread);
  if (!thread.stack_problem.empty()) out += "  " + printable(thread.stack_problem) + "\n";
  if (thread.interrupted && !thread.interrupted->rows.empty()) {
    out += rows_text(thread.interrupted->earlier_rows, thread.interrupted->rows, most_callers);
    const ReportPlace& place = thread.interrupted->place;
    const std::string& by = thread.interrupted->by;
    const std::string where = frame_text(place.frames.front(), place);
    out += by.empty() ? "  => a signal at " + where + "; its handler's last calls:\n"
                      : "  => " + printable(by) + " called at " + where + "; the last calls:\n";
  }
  out += rows_text(thread.earlier_rows, thread.rows, most_callers);
  if (thread.died) {
    const ReportFrame& frame = thread.place.frames.front();
    out += "  => " + report.signal_name + " at " + frame_text(frame, thread.place) + "\n";
  }
  if (thread.ended) out += "  => the thread ended\n";
  out += calls_text(thread.last_calls) + stack_text(thread.stack);
  return out;
}

std::string head(const Report& report) {
  std::string out = "program " + title(report) + "\n";
  if (!report.command.empty()) out += "command: " + printable(report.command) + "\n";
  if (!report.run.empty()) out += "a child of: " + printable(report.run) + "\n";
  for (const std::string& note : report.notes) out += "note: " + printable(note) + "\n";
  return out + "FILE:LINE is the call site; > marks calls that had not returned\n";
}

/// Returns a code fence that nothing in `text` closes.
std::string fence_for(const std::string& text) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(std::max<std::size_t>(3, longest + 1), '`');
}

/// Groups threads if there are many; otherwise one group for each thread.
std::vector<ThreadGroup> markdown_groups(const Report& report) {
  if (report.threads.size() > kFewThreads) return thread_groups(report);
  std::vector<ThreadGroup> out;
  for (std::size_t i = 0; i < report.threads.size(); ++i) out.push_back({{i}});
  return out;
}

std::string cut_lines(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  // The end is kept, because it shows the failure.
  const std::size_t at = text.find('\n', text.size() - most);
  return "... cut ...\n" + (at == std::string::npos ? std::string{} : text.substr(at + 1));
}

}  // namespace

std::string report_text(const Report& report, bool all_threads) {
  std::string out = head(report);
  if (all_threads || report.threads.size() <= kFewThreads) {
    for (const ReportThread& thread : report.threads) out += "\n" + thread_text(report, thread);
    return out;
  }
  const std::vector<ThreadGroup> groups = thread_groups(report);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ReportThread& first = report.threads[groups[i].threads.front()];
    const std::string others = others_text(report, groups[i]);
    if (i < kFewThreads) {
      out += "\n" + thread_text(report, first);
    } else {
      out += (i == kFewThreads ? "\n" : "") + thread_line(first);
    }
    if (!others.empty()) out += "  " + others + "\n";
  }
  return out + fmt::format("\nthere are {} threads; --all-threads shows each of them in full\n",
                           report.threads.size());
}

std::string report_summary(const Report& report) {
  std::string out = head(report);
  if (report.threads.empty()) return out;
  out += "\n" + thread_text(report, report.threads.front(), kFewCallers);
  if (const std::size_t others = report.threads.size() - 1 + report.left_out; others != 0) {
    out += fmt::format("{} other thread{} {} not shown\n", grouped(others), others == 1 ? "" : "s",
                       others == 1 ? "is" : "are");
  }
  return out;
}

std::string report_signature(const Report& report) {
  return printable(report.signature) + "\n";
}

std::string report_markdown(const Report& report, std::size_t most) {
  constexpr std::size_t kFrame = 1024;
  std::string out = "### " + markdown_escaped(title(report)) + "\n\n";
  const std::string top = cut_lines(head(report), most / 8);
  const std::string top_fence = fence_for(top);
  out += top_fence + "text\n" + top + top_fence + "\n\n";
  std::size_t left_out = 0;
  for (const ThreadGroup& group : markdown_groups(report)) {
    const ReportThread& thread = report.threads[group.threads.front()];
    const std::size_t room = most - std::min(most, out.size() + kFrame);
    std::string text = thread_text(report, thread);
    if (const std::string others = others_text(report, group); !others.empty()) {
      text += "  " + others + "\n";
    }
    const bool is_first = &thread == &report.threads.front();
    if (is_first) {
      text = cut_lines(text, room);
    } else if (left_out != 0 || text.size() > room) {
      left_out += group.threads.size();
      continue;
    }
    const std::string fence = fence_for(text);
    out += fmt::format("<details{}><summary>{}</summary>\n\n{}text\n{}{}\n\n</details>\n\n",
                       is_first ? " open" : "", markdown_escaped(thread_title(thread)), fence, text,
                       fence);
  }
  if (left_out != 0) out += fmt::format("{} more threads are left out.\n", left_out);
  return out;
}

}  // namespace backtrail::decoder
