// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/shown_rows.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

/// Returns true for glibc functions that start a program or a thread.
bool is_starter(const std::string& function) {
  constexpr std::array<std::string_view, 10> kNames{"_start",
                                                    "__libc_start_main",
                                                    "__libc_start_main_impl",
                                                    "__libc_start_call_main",
                                                    "clone",
                                                    "__clone",
                                                    "clone3",
                                                    "__clone3",
                                                    "thread_start",
                                                    "start_thread"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end();
}
/// Returns true for places in libc without a name: stripped libraries name no start-up functions.
bool is_nameless_of_libc(const std::string& function) {
  const bool is_libc = function.starts_with("libc.so") || function.starts_with("libc-") ||
                       function.starts_with("libpthread") || function.starts_with("ld-");
  return is_libc && function.find("+0x") != std::string::npos;
}
/// Returns true for functions that start_thread calls before a thread's own function.
bool is_preparation(const std::string& function) {
  constexpr std::array<std::string_view, 5> kNames{"__ctype_init", "_setjmp", "__sigsetjmp",
                                                   "__sigjmp_save", "__libc_siglongjmp"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end() ||
         is_nameless_of_libc(function);
}

bool is_open(const ReportRow& row) {
  return row.kind == RowKind::kCall && row.end == CallEnd::kOpen;
}

/// The start-up functions that had not returned, and the function that they called.
struct Begin {
  std::vector<std::size_t> starters;
  std::size_t own = kNone;  ///< kNone if there is no start-up to leave out.
};
Begin begin_of(const std::vector<ReportRow>& rows) {
  Begin out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!is_open(rows[i])) continue;
    if (!is_starter(rows[i].function) && !is_nameless_of_libc(rows[i].function)) {
      if (!out.starters.empty()) out.own = i;
      break;
    }
    out.starters.push_back(i);
  }
  return out;
}

/// Returns the first of the program's own rows: main, which may have returned, or the thread's
/// function.
std::size_t first_of(const std::vector<ReportRow>& rows, const Begin& begin) {
  const std::uint32_t level = rows[begin.own].level;
  const std::size_t from = begin.starters.back() + 1;
  std::size_t first = kNone;
  for (std::size_t i = from; i <= begin.own; ++i) {
    if (rows[i].kind != RowKind::kCall || rows[i].level != level) continue;
    if (rows[i].function == "main") return i;
    if (first == kNone && !is_preparation(rows[i].function)) first = i;
  }
  return first;
}

std::string key_of(const ReportThread& thread) {
  std::string key = thread.ended ? "ended" : thread.place.module_place;
  if (thread.interrupted) key += "\n" + thread.interrupted->by;
  for (const ReportFrame& frame : thread.place.frames) key += "\n" + frame.function;
  for (const ReportRow& row : thread.rows) {
    if (is_open(row)) key += fmt::format("\n{} {}:{}", row.function, row.file, row.line);
  }
  return key;
}

}  // namespace

ShownRows without_start_up(std::vector<ReportRow> rows) {
  const Begin begin = begin_of(rows);
  if (begin.own == kNone) return {std::move(rows), 0};
  const std::size_t first = first_of(rows, begin);
  if (first == kNone) return {std::move(rows), 0};
  ShownRows out;
  // Rows before callers from the stack are the program's earlier calls.
  const bool keeps_older = rows[begin.starters.front()].from_stack;
  const std::uint32_t level = rows[first].level;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_older = i < begin.starters.front() && keeps_older;
    if (i >= first) {
      rows[i].level -= std::min(rows[i].level, level);
    } else if (!is_older) {
      const bool counts =
          rows[i].kind == RowKind::kCall &&
          std::find(begin.starters.begin(), begin.starters.end(), i) == begin.starters.end();
      if (counts) ++out.start_up;
      continue;
    }
    out.rows.push_back(std::move(rows[i]));
  }
  return out;
}

std::vector<ReportRow> with_few_callers(std::vector<ReportRow> rows, std::size_t most) {
  const std::size_t callers = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const ReportRow& row) { return row.context; }));
  if (callers <= most) return rows;
  constexpr std::size_t kOutermost = 2;
  std::vector<ReportRow> out;
  std::uint64_t left_out = 0;
  std::size_t seen = 0;
  for (ReportRow& row : rows) {
    const bool is_left_out =
        row.context && seen >= kOutermost && seen + most < callers + kOutermost;
    if (row.context) ++seen;
    if (is_left_out) {
      left_out += row.kind == RowKind::kOmitted ? row.repeat : 1;
      continue;
    }
    if (left_out != 0) {
      ReportRow omitted;
      omitted.kind = RowKind::kOmitted;
      omitted.level = row.level - std::min(row.level, 1U);
      omitted.repeat = std::exchange(left_out, 0);
      omitted.context = true;
      out.push_back(std::move(omitted));
    }
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<ThreadGroup> thread_groups(const Report& report) {
  std::vector<ThreadGroup> out;
  std::map<std::string, std::size_t> by_key;
  for (std::size_t i = 0; i < report.threads.size(); ++i) {
    const ReportThread& thread = report.threads[i];
    const std::string key = thread.died ? std::string{} : key_of(thread);
    const auto [place, is_new] = by_key.try_emplace(key, out.size());
    if (thread.died || is_new) {
      place->second = out.size();
      out.emplace_back();
    }
    out[place->second].threads.push_back(i);
  }
  return out;
}

}  // namespace backtrail::decoder
