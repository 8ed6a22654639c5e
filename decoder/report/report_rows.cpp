// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/report_rows.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "decoder/report/crash_signature.hpp"

namespace backtrail::decoder {
namespace {

/// Callers shown of a deep stack: the outermost and the innermost.
constexpr std::size_t kOutermost = 8;
constexpr std::size_t kInnermost = 24;

/// Returns the rows that contain the row at `first`, outermost first.
std::vector<std::size_t> ancestors(std::span<const FoldedRow> rows, std::size_t first) {
  std::vector<std::size_t> out;
  if (first >= rows.size()) return out;
  std::uint32_t level = rows[first].level;
  for (std::size_t i = first; i-- > 0 && level > 0;) {
    if (rows[i].level >= level) continue;
    level = rows[i].level;
    out.push_back(i);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

class RowWriter {
 public:
  RowWriter(const RowSource& source, Symbols& symbols) : source_{source}, symbols_{symbols} {}

  void add(std::size_t index, bool context) {
    const FoldedRow& row = source_.rows[index];
    enter(row.level);
    switch (row.kind) {
      case FoldedRow::Kind::kCall:
        add_call(row, context);
        return;
      case FoldedRow::Kind::kRounds:
        add_rounds(index, context);
        return;
      case FoldedRow::Kind::kRepeat: {
        ReportRow out;
        out.kind = RowKind::kRepeat;
        out.repeat = row.repeat;
        put(std::move(out), row.level, context);
        return;
      }
      case FoldedRow::Kind::kGap: {
        ReportRow out;
        out.kind = RowKind::kGap;
        out.gap = gap_text(source_.gaps[row.index].record);
        put(std::move(out), row.level, context);
        return;
      }
      case FoldedRow::Kind::kOff: {
        ReportRow out;
        out.kind = RowKind::kOff;
        out.repeat = row.repeat;
        out.off = source_.offs[row.index];
        put(std::move(out), row.level, context);
        return;
      }
    }
  }
  void add_rounds(std::size_t index, bool context) {
    const FoldedRow& row = source_.rows[index];
    ReportRow out;
    out.kind = RowKind::kRounds;
    out.repeat = row.repeat;
    out.nested = row.round;
    out.end = source_.calls[row.index].end;
    out.calls = row.calls;
    out.from_stack = source_.calls[row.index].from_stack;
    std::uint32_t level = row.level;
    for (std::size_t i = index; level + row.round > row.level;) {
      if (source_.rows[--i].level + 1 != level) continue;
      --level;
      const std::string name = name_of(source_.calls[source_.rows[i].index]);
      out.function = out.function.empty() ? name : name + ", " + out.function;
    }
    put(std::move(out), row.level, context);
  }
  void add_omitted(std::uint64_t count, std::uint32_t level) {
    enter(level);
    ReportRow out;
    out.kind = RowKind::kOmitted;
    out.repeat = count;
    put(std::move(out), level, true);
  }
  std::vector<ReportRow> take() {
    std::uint32_t least = ~0U;
    for (const ReportRow& row : rows_) least = std::min(least, row.level);
    for (ReportRow& row : rows_) row.level -= least;
    return std::move(rows_);
  }

 private:
  /// State of one level of the tree: the functions inlined around its newest row.
  struct Level {
    std::vector<CodeFrame> inlined;  ///< Outermost first.
    std::uint32_t above = 0;         ///< Rows of inlined functions at outer levels.
  };

  void enter(std::uint32_t level) {
    if (levels_.size() > level + 1) levels_.resize(level + 1);
    while (levels_.size() <= level) {
      const auto above =
          levels_.empty()
              ? 0U
              : levels_.back().above + static_cast<std::uint32_t>(levels_.back().inlined.size());
      levels_.push_back({{}, above});
    }
  }

  void put(ReportRow row, std::uint32_t level, bool context) {
    const Level& at = levels_[level];
    row.level = level + at.above + static_cast<std::uint32_t>(at.inlined.size());
    row.context = context;
    rows_.push_back(std::move(row));
  }

  void add_call(const FoldedRow& row, bool context) {
    const Call& call = source_.calls[row.index];
    ReportRow out;
    out.function = name_of(call);
    out.repeat = row.repeat;
    out.nested = row.nested;
    out.begin = call.begin;
    out.end = call.end;
    out.begin_position = call.begin_position;
    out.end_position = call.end_position;
    out.from_stack = call.from_stack;
    const TraceeAddr at = call.site == TraceeAddr{} ? call.first : call.site;
    // A tail call's site is not in the function above, so it has no place there.
    const bool has_place = call.begin == CallBegin::kUnseen && call.site != TraceeAddr{};
    if (call.begin == CallBegin::kCalled || call.begin == CallBegin::kSignal || has_place) {
      show_inlined(at, row.level, context);
    } else {
      levels_[row.level].inlined.clear();
    }
    const SourceLine line = symbols_.line_at(at);
    out.file = symbols_.text(line.file);
    out.line = line.line;
    put(std::move(out), row.level, context);
  }

  /// Adds rows for the functions inlined around a call that the level does not show yet.
  void show_inlined(TraceeAddr site, std::uint32_t level, bool context) {
    const std::vector<CodeFrame>& frames = symbols_.frames_at(site);
    std::vector<CodeFrame> wanted;
    for (std::size_t i = frames.size(); i-- > 1;) {
      // The inlined function, with the place that it is inlined into.
      wanted.push_back({frames[i - 1].name, frames[i].line, true});
    }
    std::vector<CodeFrame>& shown = levels_[level].inlined;
    std::size_t same = 0;
    while (same < std::min(shown.size(), wanted.size()) && shown[same].name == wanted[same].name &&
           shown[same].line == wanted[same].line) {
      ++same;
    }
    shown.resize(same);
    for (std::size_t i = same; i < wanted.size(); ++i) {
      ReportRow out;
      out.kind = RowKind::kInlined;
      out.function = symbols_.text(wanted[i].name);
      out.file = symbols_.text(wanted[i].line.file);
      out.line = wanted[i].line.line;
      put(std::move(out), level, context);
      shown.push_back(wanted[i]);
    }
  }

  std::string name_of(const Call& call) {
    std::string name = symbols_.function_name(call.function.id);
    if (name.empty()) name = symbols_.module_place(call.first);
    return name.empty() ? fmt::format("{:#x}", call.first.value()) : name;
  }

  const RowSource& source_;
  Symbols& symbols_;
  std::vector<Level> levels_;
  std::vector<ReportRow> rows_;
};

}  // namespace

namespace {

bool is_traced_call(const FoldedRow& row, std::span<const Call> calls) {
  return row.kind == FoldedRow::Kind::kCall && !calls[row.index].from_stack;
}

/// Returns true for a call from the stack, or rounds of such calls.
bool is_from_stack(const FoldedRow& row, std::span<const Call> calls) {
  return (row.kind == FoldedRow::Kind::kCall || row.kind == FoldedRow::Kind::kRounds) &&
         calls[row.index].from_stack;
}

/// Adds the nested stack rows from `at` on and leaves out the middle of many. Returns their number.
std::size_t add_stack(const RowSource& source, std::size_t at, RowWriter& writer) {
  const auto rows = source.rows.subspan(at);
  std::size_t count = 0;
  while (count < rows.size() && is_from_stack(rows[count], source.calls)) ++count;
  const bool deep = count > kOutermost + kInnermost + 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (deep && i == kOutermost) {
      const std::size_t omitted = count - kOutermost - kInnermost;
      writer.add_omitted(omitted, rows[i].level);
      i += omitted - 1;
      continue;
    }
    writer.add(at + i, true);
  }
  return count;
}

}  // namespace

std::size_t count_calls(std::span<const FoldedRow> rows, std::span<const Call> calls) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const auto& row) { return is_traced_call(row, calls); }));
}

std::size_t calls_with_own(const RowSource& source, const Symbols& symbols, std::size_t own,
                           std::size_t most) {
  std::size_t count = 0;
  for (std::size_t at = source.rows.size(); at > 0 && own > 0 && count < most; --at) {
    const FoldedRow& row = source.rows[at - 1];
    if (!is_traced_call(row, source.calls)) continue;
    ++count;
    const Call& call = source.calls[row.index];
    if (!is_run_time_library(symbols.module_place(call.first))) --own;
  }
  return own == 0 ? count : most;
}

std::vector<ReportRow> report_rows(const RowSource& source, Symbols& symbols, std::size_t most) {
  const std::span<const FoldedRow> rows = source.rows;
  std::size_t first = rows.size();
  for (std::size_t count = 0; first > 0 && count < most; --first) {
    if (is_traced_call(rows[first - 1], source.calls)) ++count;
  }
  RowWriter writer{source, symbols};
  const std::vector<std::size_t> within = ancestors(rows, first);
  for (std::size_t i = 0; i < within.size(); ++i) {
    const bool deep = within.size() > kOutermost + kInnermost + 1;
    if (deep && i == kOutermost) {
      const std::size_t omitted = within.size() - kOutermost - kInnermost;
      writer.add_omitted(omitted, rows[within[i]].level);
      i += omitted - 1;
      continue;
    }
    writer.add(within[i], true);
  }
  for (std::size_t i = first; i < rows.size();) {
    if (is_from_stack(rows[i], source.calls)) {
      i += add_stack(source, i, writer);
    } else {
      writer.add(i++, false);
    }
  }
  return writer.take();
}

std::string gap_text(const Record& gap) {
  switch (gap.reason) {
    case GapReason::kOverflow:
      if (gap.payload == 0) return "branches were lost here";
      return fmt::format("{}{} {} were lost here",
                         gap.bound == LossBound::kAtLeast ? "at least " : "", gap.payload,
                         gap.bound == LossBound::kBatches ? "batches of branches" : "branches");
    case GapReason::kPcChanged:
      return "a debugger changed the program counter here";
    case GapReason::kExec:
      return "the program called exec here";
    case GapReason::kUndecodable:
      return "the code here was unreadable; what ran is unknown";
    case GapReason::kUnseenAsync:
      return "control moved here without a recorded branch, perhaps by a signal";
    case GapReason::kStart:
      return "recording restarted here";
    default:
      return "execution was not recorded here";
  }
}

}  // namespace backtrail::decoder
