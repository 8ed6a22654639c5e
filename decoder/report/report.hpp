#pragma once
/// @file
/// What a crash file tells people: made once, written as text, Markdown or JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/calls/call.hpp"
#include "decoder/report/off_marks.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// A place in code, with what is known of it. Texts are as the files have them: writers escape.
struct ReportFrame {
  std::string function;  ///< Empty: unknown.
  std::string file;      ///< Empty: unknown.
  std::uint32_t line = 0;
  bool inlined = false;  ///< Into the next one.
};
struct ReportPlace {
  TraceeAddr address;
  std::string module_place;         ///< "lib.so+0x123"; empty: no file is mapped there.
  std::vector<ReportFrame> frames;  ///< Innermost first; at least one.
};

enum class RowKind : std::uint8_t {
  kCall,
  kInlined,  ///< A function whose code is part of the one above; its calls stand below it.
  kRepeat,   ///< What stands below, one level deeper, happened `repeat` times in a row.
  kGap,
  kOff,      ///< The thread was off its CPU for `off.ns`.
  kRounds,   ///< The `nested` callers, `function`, called each other `repeat` times more.
  kOmitted,  ///< Callers that are not shown; `repeat` says how many.
};

struct ReportRow {
  RowKind kind = RowKind::kCall;
  std::uint32_t level = 0;
  std::string function;  ///< Never empty for calls; an address where nothing is known.
  std::string file;      ///< Where it was called.
  std::uint32_t line = 0;
  std::uint64_t repeat = 1;  ///< So many times in a row.
  std::uint64_t nested = 1;  ///< It called itself, so many deep.
  std::uint64_t calls = 0;   ///< Of kRounds: all that were made in those rounds.
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kReturned;
  bool from_stack = false;  ///< No branch tells of the call: it is on the stack at the end.
  bool context = false;     ///< Older than the calls asked for: shown because they lie within.
  std::string gap;          ///< A sentence.
  OffMark off;
  /// How long before the thread's last moment a call began, at least and at most; absent: not
  /// known.
  std::optional<TimeRange> began_before_end;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
};

/// Where a thread was when something came between: a signal handler that was still running at the
/// end, or had just returned; or its own failure (a panic, a sanitizer's report, an exception).
struct ReportInterrupted {
  bool returned = false;
  std::string by;     ///< The function that was called because of the failure; empty: a handler.
  ReportPlace place;  ///< What the handler interrupted, or where that function was called.
  std::vector<ReportFrame> callers;  ///< Of `place`, innermost first, if it is a failure.
  std::string instruction;
  /// The calls before the handler's or the failure's; empty where `ReportThread::rows` begins with
  /// older ones.
  std::uint64_t earlier_rows = 0;
  std::vector<ReportRow> rows;
};

struct ReportThread {
  std::uint32_t tid = 0;
  bool is_first = false;  ///< In the core: it died, or ended the process.
  bool died = false;
  bool ended = false;          ///< Before the file was written; `place` is empty.
  bool arrived = false;        ///< `from` is the branch that went to the pc.
  bool lost_is_exact = false;  ///< Else at least so many.
  bool lost_between_is_exact = true;
  /// The stack's callers are known, up to the thread's first function.
  bool stack_complete = false;
  std::string name;
  ReportPlace place;        ///< Its pc.
  std::string instruction;  ///< At its pc; empty: unreadable.
  ReportPlace from;
  std::string from_instruction;
  std::uint64_t recorded = 0;      ///< Branches in the file.
  std::uint64_t lost = 0;          ///< Older ones that were not kept.
  std::uint64_t lost_between = 0;  ///< Newer ones that were lost while it was recorded.
  std::uint64_t missing = 0;       ///< Records of blocks that are damaged or not in the file.
  std::uint64_t looked_at = 0;     ///< Branches that `calls` were made from.
  std::uint64_t calls = 0;
  std::uint64_t earlier_rows = 0;  ///< Before `rows`, but for those before `interrupted`.
  std::string stack_problem;  ///< Why the stack is not complete: a sentence without a full stop.
  std::optional<OffSums> times;
  /// Of the thread that died, failed or ended.
  std::optional<ReportInterrupted> interrupted;
  std::vector<ReportRow> rows;
};

/// A signal in words.
struct ReportSignal {
  int number = 0;
  std::string name;                   ///< "SIGSEGV".
  std::string cause;                  ///< A sentence without a full stop.
  std::optional<TraceeAddr> address;  ///< What it is about, where it says so.
};

struct Report {
  std::string program;
  std::string command;
  std::uint32_t pid = 0;
  int signal = 0;
  std::string signal_name;  ///< "SIGSEGV".
  std::string cause;        ///< A sentence without a full stop.
  std::string ending;       ///< "exited with status 1"; empty when a signal ended it.
  bool has_address = false;
  TraceeAddr address;  ///< What the fault is about, where the signal says so.
  std::string run;     ///< The command of the program whose child this is; empty: of none.
  /// The signal whose handler raised another, or the same one again, which ended it all.
  std::optional<ReportSignal> first_signal;
  /// What tells duplicates by: how it ended, and the innermost of the program's own functions.
  std::string signature;
  std::vector<std::string> notes;
  std::vector<ReportThread> threads;
  std::size_t left_out = 0;  ///< Threads that nobody asked for.
};

/// "SIGSEGV"; "signal 99" for numbers without a name; "no signal" for 0.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace backtrail::decoder
