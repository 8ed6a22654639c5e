// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/call_values.hpp"

#include <algorithm>
#include <memory>

#include "decoder/report/crash_signature.hpp"

namespace backtrail::decoder {
namespace {

/// Instructions of a stub that leads to a function.
constexpr std::size_t kStubSteps = 16;
/// Instructions with which a function sets up its frame.
constexpr std::size_t kPrologueSteps = 256;

class Reader {
 public:
  Reader(const ThreadCalls& traced, std::uint32_t tid, ValueSource& values, Symbols& symbols)
      : traced_{traced}, tid_{tid}, values_{values}, symbols_{symbols} {}

  [[nodiscard]] bool is_shown(const Call& call) const {
    if (call.from_stack || call.begin_position <= traced_.numbered_from()) return false;
    if (newer(call.begin_position) > kMostValueRecords) return false;
    const bool begins = call.begin == CallBegin::kCalled || call.begin == CallBegin::kTailCalled ||
                        call.begin == CallBegin::kSignal;
    return begins && !call.function.stub &&
           !is_run_time_library(symbols_.module_place(call.first)) &&
           symbols_.variables().problem(call.first).empty();
  }

  void read(const Call& call, ReportCall& out) {
    VariableReader& variables = symbols_.variables();
    const auto later = variables.after_prologue(call.first);
    const auto entry = values_.in_past(tid_, {newer(call.begin_position), call.first, kStubSteps});
    if (entry == nullptr) return;
    std::unique_ptr<FrameState> after;
    if (later) {
      after = values_.in_past(tid_, {newer(call.begin_position), *later, kPrologueSteps});
    }
    out.arguments = variables.arguments(call.first, *entry, after.get());
    if (call.end != CallEnd::kReturned) return;
    const auto end = values_.after_return(tid_, newer(call.end_position));
    if (end != nullptr) out.result = variables.result(call.first, *end);
  }

 private:
  /// Returns the number of records after those that were fed at `position`.
  [[nodiscard]] std::uint64_t newer(std::uint64_t position) const {
    return traced_.records - std::min(position, traced_.records);
  }

  const ThreadCalls& traced_;
  std::uint32_t tid_;
  ValueSource& values_;
  Symbols& symbols_;
};

}  // namespace

std::vector<ReportCall> last_calls(const ThreadCalls& traced, std::uint32_t tid,
                                   ValueSource& values, CodePlaces& places, Symbols& symbols) {
  Reader reader{traced, tid, values, symbols};
  std::vector<const Call*> shown;
  for (std::size_t i = traced.calls.size(); i-- > 0 && shown.size() < kMostValueCalls;) {
    if (reader.is_shown(traced.calls[i])) shown.push_back(&traced.calls[i]);
  }
  std::vector<ReportCall> out;
  std::uint32_t least = ~0U;
  for (const Call* call : shown) least = std::min(least, call->depth);
  // The newest first: values are recovered from the end on.
  for (const Call* call : shown) {
    ReportCall one;
    one.level = call->depth - least;
    one.function = places.function_at(call->first);
    const SourceLine line = symbols.line_at(call->site == TraceeAddr{} ? call->first : call->site);
    one.file = symbols.text(line.file);
    one.line = line.line;
    one.begin = call->begin;
    one.end = call->end;
    one.begin_position = call->begin_position;
    one.end_position = call->end_position;
    reader.read(*call, one);
    out.push_back(std::move(one));
  }
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace backtrail::decoder
