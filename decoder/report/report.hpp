// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The contents of a report on a crash file. Writers turn it into text, Markdown or JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/calls/call.hpp"
#include "decoder/report/off_marks.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/variables/variable_reader.hpp"

namespace backtrail::decoder {

/// A function at a place in code. Texts are unescaped; writers escape them.
struct ReportFrame {
  std::string function;  ///< Empty if unknown.
  std::string file;      ///< Empty if unknown.
  std::uint32_t line = 0;
  bool inlined = false;  ///< Inlined into the next frame.
};
struct ReportPlace {
  TraceeAddr address;
  std::string module_place;  ///< For example "lib.so+0x123"; empty if no file is mapped there.
  std::vector<ReportFrame> frames;  ///< Innermost first; at least one.
};

enum class RowKind : std::uint8_t {
  kCall,
  kInlined,  ///< A function inlined into the one above; calls from its code are nested below it.
  kRepeat,   ///< The rows one level deeper below this one ran `repeat` times in a row.
  kGap,
  kOff,      ///< The thread was off its CPU for `off.ns`.
  kRounds,   ///< The `nested` callers named in `function` called each other `repeat` more times.
  kOmitted,  ///< `repeat` callers are not shown.
};

struct ReportRow {
  RowKind kind = RowKind::kCall;
  std::uint32_t level = 0;
  std::string function;  ///< Never empty for calls; an address if no name is known.
  std::string file;      ///< File of the call site; empty if unknown.
  std::uint32_t line = 0;
  std::uint64_t repeat = 1;  ///< Repetitions in a row.
  std::uint64_t nested = 1;  ///< Depth of direct recursion.
  std::uint64_t calls = 0;   ///< kRounds: number of calls made in those rounds.
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kReturned;
  bool from_stack = false;  ///< Found on the stack at the end, not in the trace.
  bool context = false;     ///< Older than the calls asked for; shown as their caller.
  std::string gap;          ///< A sentence.
  OffMark off;
  /// Time from the call's begin to the thread's last moment, at least and at most; nullopt if not
  /// known.
  std::optional<TimeRange> began_before_end;
  std::uint64_t begin_position = 0;
  std::uint64_t end_position = 0;
};

/// Where a thread was when it was interrupted: by a signal handler that was still running at the
/// end or had just returned, or by its own failure (a panic, a sanitizer's report, an exception).
struct ReportInterrupted {
  bool returned = false;
  /// Only the name of `by` says that it is a failure; it may have been called in good order.
  bool by_name = false;
  std::string by;     ///< The function called because of the failure; empty for a handler.
  ReportPlace place;  ///< The place that the handler interrupted, or the call site of `by`.
  std::vector<ReportFrame> callers;  ///< Callers of `place`, innermost first; empty for a handler.
  std::string instruction;
  /// Calls before the handler or the failure. `rows` is empty if `ReportThread::rows` includes
  /// them.
  std::uint64_t earlier_rows = 0;
  std::vector<ReportRow> rows;
};

/// A frame of the stack at a thread's end.
struct ReportStackFrame {
  ReportFrame frame;
  TraceeAddr address;        ///< The pc, or the address to which a callee returns.
  std::string module_place;  ///< Empty if no file is mapped there.
  bool is_handler_return = false;
  std::optional<FrameVariables> variables;  ///< nullopt without debug information.
};
struct ReportStack {
  std::vector<ReportStackFrame> frames;  ///< Innermost first.
  std::size_t left_out = 0;              ///< Outer frames that were not read.
  std::vector<std::string> problems;     ///< Why frames have no variables.
};

/// One of a thread's last calls, with its arguments when it was made.
struct ReportCall {
  std::uint32_t level = 0;  ///< Depth below the shown call with the fewest callers.
  std::string function;     ///< Never empty; an address if no name is known.
  std::string file;         ///< File of the call site; empty if unknown.
  std::uint32_t line = 0;
  CallBegin begin = CallBegin::kCalled;
  CallEnd end = CallEnd::kReturned;
  std::uint64_t begin_position = 0;  ///< As in ReportRow.
  std::uint64_t end_position = 0;
  std::optional<std::vector<Variable>> arguments;  ///< nullopt without debug information.
  std::optional<Variable> result;  ///< Set if it returned a number, a pointer or a reference.
};

struct ReportThread {
  std::uint32_t tid = 0;
  bool is_first = false;  ///< First in the core: it died or ended the process.
  bool died = false;
  bool ended = false;          ///< Ended before the file was written; `place` is empty.
  bool arrived = false;        ///< `from` is the branch that led to the pc.
  bool lost_is_exact = false;  ///< False if `lost` is a lower bound.
  bool lost_between_is_exact = true;
  /// The callers are known up to the thread's first function.
  bool stack_complete = false;
  std::string name;
  ReportPlace place;        ///< The place of its pc.
  std::string instruction;  ///< The instruction at its pc; empty if unreadable.
  ReportPlace from;
  std::string from_instruction;
  std::uint64_t recorded = 0;      ///< Branches in the file.
  std::uint64_t lost = 0;          ///< Older branches that were not kept.
  std::uint64_t lost_between = 0;  ///< Branches lost during recording.
  std::uint64_t missing = 0;       ///< Records in blocks that are damaged or not in the file.
  std::uint64_t looked_at = 0;     ///< Branches that `calls` were rebuilt from.
  std::uint64_t calls = 0;
  std::uint64_t earlier_rows = 0;  ///< Calls before `rows`, without those before `interrupted`.
  std::string stack_problem;  ///< Why the stack is not complete: a sentence without a full stop.
  std::optional<OffSums> times;
  ReportStack stack;                   ///< Without frames unless values were asked for.
  std::vector<ReportCall> last_calls;  ///< Oldest first; empty unless values were asked for.
  /// Set if the thread was in a handler or failed.
  std::optional<ReportInterrupted> interrupted;
  std::vector<ReportRow> rows;
};

/// A signal and its cause.
struct ReportSignal {
  int number = 0;
  std::string name;                   ///< For example "SIGSEGV".
  std::string cause;                  ///< A sentence without a full stop.
  std::optional<TraceeAddr> address;  ///< The address concerned; nullopt if the signal names none.
};

struct Report {
  std::string program;
  std::string command;
  std::uint32_t pid = 0;
  int signal = 0;
  std::string signal_name;  ///< For example "SIGSEGV".
  std::string cause;        ///< A sentence without a full stop.
  std::string ending;       ///< For example "exited with status 1"; empty if a signal ended it.
  bool has_address = false;
  TraceeAddr address;  ///< The address that the fault concerns; valid if `has_address`.
  std::string run;     ///< Command of the run whose child this program is; empty if it is no child.
  /// The signal whose handler raised the fatal one, which may be the same signal again.
  std::optional<ReportSignal> first_signal;
  /// A key for finding duplicates: how it ended, and the innermost of the program's own functions.
  std::string signature;
  std::vector<std::string> notes;
  std::vector<ReportThread> threads;
  std::size_t left_out = 0;  ///< Threads left out as requested.
};

/// Returns "SIGSEGV"; "signal 99" for a number without a name; "no signal" for 0.
[[nodiscard]] std::string signal_name(int signal);

}  // namespace backtrail::decoder
