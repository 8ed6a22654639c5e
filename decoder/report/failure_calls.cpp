// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/failure_calls.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

namespace backtrail::decoder {
namespace {

/// Beginnings of names. Nobody calls these without a failure.
constexpr std::array kSure{
    // Rust
    std::string_view{"core::panicking::"}, std::string_view{"std::panicking::begin_panic"},
    std::string_view{"std::panicking::rust_panic"}, std::string_view{"rust_panic"},
    std::string_view{"rust_begin_unwind"}, std::string_view{"core::result::unwrap_failed"},
    std::string_view{"core::option::expect_failed"}, std::string_view{"std::process::abort"},
    std::string_view{"alloc::alloc::handle_alloc_error"},
    std::string_view{"alloc::raw_vec::capacity_overflow"},
    std::string_view{"core::option::unwrap_failed"}, std::string_view{"core::slice::index::slice_"},
    // C and C++
    std::string_view{"__assert_fail"}, std::string_view{"__assert_perror_fail"},
    std::string_view{"abort"}, std::string_view{"__stack_chk_fail"},
    std::string_view{"__fortify_fail"}, std::string_view{"__chk_fail"},
    std::string_view{"std::terminate"}, std::string_view{"__cxxabiv1::__terminate"},
    std::string_view{"__cxa_pure_virtual"}, std::string_view{"std::__glibcxx_assert_fail"},
    std::string_view{"malloc_printerr"}, std::string_view{"__libc_fatal"},
    std::string_view{"__libc_message"}, std::string_view{"qt_assert"},
    std::string_view{"g_assertion_message"}, std::string_view{"google::LogMessageFatal"},
    // frameworks of tests
    std::string_view{"testing::internal::AssertHelper::"},
    std::string_view{"Catch::RunContext::populateReaction"},
    std::string_view{"doctest::detail::throwException"},
    std::string_view{"doctest::detail::addFailedAssert"},
    std::string_view{"doctest::detail::(anonymous namespace)::addFailedAssert"},
    std::string_view{"doctest::(anonymous namespace)::addFailedAssert"},
    std::string_view{"QTestResult::addFailure"}, std::string_view{"CppUnit::Asserter::fail"},
    std::string_view{"_ck_assert_failed"}, std::string_view{"UnityFail"},
    // Go
    std::string_view{"runtime.gopanic"}, std::string_view{"runtime.throw"},
    std::string_view{"runtime.fatal"},
    // sanitizers
    std::string_view{"__asan_report_"}, std::string_view{"__asan::Report"},
    std::string_view{"__ubsan_handle_"}, std::string_view{"__ubsan::ScopedReport::ScopedReport"},
    std::string_view{"__tsan::Report"}, std::string_view{"__msan_warning"},
    std::string_view{"__msan::Report"}, std::string_view{"__hwasan::Report"},
    std::string_view{"__sanitizer::HandleDeadlySignal"},
    std::string_view{"__sanitizer::StartReportDeadlySignal"}};

constexpr std::array kLeave{std::string_view{"__cxa_throw"},
                            std::string_view{"__cxa_rethrow"},
                            std::string_view{"std::__throw_"},
                            std::string_view{"std::rethrow_exception"},
                            std::string_view{"_Unwind_RaiseException"},
                            std::string_view{"_Unwind_ForcedUnwind"},
                            std::string_view{"pthread_exit"},
                            std::string_view{"__pthread_exit"}};

/// Functions in kLeave that throw an exception. If nobody catches it, the calls that they make
/// belong to the exception's failure.
constexpr std::array kThrow{std::string_view{"__cxa_throw"}, std::string_view{"__cxa_rethrow"},
                            std::string_view{"std::__throw_"},
                            std::string_view{"std::rethrow_exception"}};

/// Prefixes of the names of a sanitizer's own functions and of its interceptors.
constexpr std::array kRuntime{
    std::string_view{"__asan"},          std::string_view{"__ubsan"},
    std::string_view{"__tsan"},          std::string_view{"__msan"},
    std::string_view{"__hwasan"},        std::string_view{"__lsan"},
    std::string_view{"__sanitizer"},     std::string_view{"__interceptor_"},
    std::string_view{"___interceptor_"}, std::string_view{"__interception"}};

template <std::size_t kCount>
bool begins_with_one(std::string_view name, const std::array<std::string_view, kCount>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

/// The function's own name: without namespaces, arguments, template arguments and what it returns.
std::string_view last_part(std::string_view name) {
  constexpr std::string_view kUnnamed{"(anonymous namespace)"};
  std::size_t begin = 0;
  std::size_t end = name.size();
  std::size_t depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (depth == 0 && name.substr(i).starts_with(kUnnamed)) {
      i += kUnnamed.size() - 1;
      continue;
    }
    if (depth == 0 && i == begin && name.substr(i).starts_with("operator")) return {};
    if (depth == 0 && c == '(') end = std::min(end, i);
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth != 0) --depth;
    if (end != name.size()) break;
    if (depth == 0 && (c == ':' || c == ' ')) begin = i + 1;
  }
  name = name.substr(begin, end - begin);
  return name.substr(0, name.find('<'));
}

bool has_a_word(std::string_view name) {
  constexpr std::array kWords{std::string_view{"fail"}, std::string_view{"panic"},
                              std::string_view{"assert"}, std::string_view{"fatal"}};
  std::string small{last_part(name)};
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return small.find(word) != std::string::npos; });
}

class Signs {
 public:
  explicit Signs(Symbols& symbols) : symbols_{symbols} {}
  FailureSign of(const Call& call) {
    const auto [known, is_new] = known_.try_emplace(call.function.id, FailureSign::kNone);
    if (is_new && call.function.known()) {
      known->second = failure_sign(symbols_.function_name(call.function.id));
    }
    return known->second;
  }
  bool is_throw(const Call& call) {
    return begins_with_one(symbols_.function_name(call.function.id), kThrow);
  }

 private:
  Symbols& symbols_;
  std::unordered_map<std::uint32_t, FailureSign> known_;
};

/// A sanitizer's library, or a program with one in it: the function's name says so, or the
/// library's.
bool is_runtime(const Call& call, Symbols& symbols) {
  const std::string module = symbols.module_place(call.first);
  const std::string_view file = std::string_view{module}.substr(0, module.find('+'));
  if (file.find("san.so") != std::string_view::npos ||
      (file.starts_with("libclang_rt.") && file.find("san") != std::string_view::npos)) {
    return true;
  }
  if (!call.function.known()) return false;
  const std::string& name = symbols.function_name(call.function.id);
  // Handlers of UndefinedBehaviorSanitizer stand in no namespace: handleShiftOutOfBoundsImpl(...).
  return begins_with_one(name, kRuntime) || name.find("__ubsan::") != std::string::npos;
}

}  // namespace

FailureSign failure_sign(std::string_view function) {
  if (begins_with_one(function, kSure)) return FailureSign::kSure;
  if (begins_with_one(function, kLeave)) return FailureSign::kLeave;
  return has_a_word(function) ? FailureSign::kName : FailureSign::kNone;
}

FailureCall find_failure(std::span<const Call> calls, Symbols& symbols, FailureSign least,
                         bool only_open) {
  Signs signs{symbols};
  FailureCall out;
  // Made by such a call, at whatever depth, or in the place of one by a jump.
  std::vector<FailureSign> within(calls.size(), FailureSign::kNone);
  std::vector<std::size_t> throws(calls.size(), kNoCall);  // The outermost that each is within.
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    const FailureSign above = call.parent == kNoCall ? FailureSign::kNone : within[call.parent];
    const FailureSign own = signs.of(call);
    within[i] = std::max(above, own);
    throws[i] = call.parent == kNoCall ? kNoCall : throws[call.parent];
    if (throws[i] == kNoCall && own == FailureSign::kLeave && signs.is_throw(call)) throws[i] = i;
    if (own < least || own <= above || own < out.sign) continue;
    if (only_open && call.end != CallEnd::kOpen) continue;
    // Behind a gap the failure before it goes on, as a rule; that one's caller is known.
    if (call.begin == CallBegin::kUnseen && own == out.sign) continue;
    // A jump from another such call goes on with that one's failure.
    if (call.begin == CallBegin::kTailCalled && out.index != kNoCall && out.sign == own &&
        calls[out.index].end == CallEnd::kTailCalled &&
        calls[out.index].end_position == call.begin_position) {
      continue;
    }
    out = {i, own};
  }
  // An exception that nobody catches ends the program: who threw it is the cause.
  if (out.index != kNoCall && throws[out.index] != kNoCall) out.index = throws[out.index];
  return out;
}

namespace {

/// The signs of the functions that branches lead to.
class BranchSigns {
 public:
  explicit BranchSigns(Symbols& symbols) : symbols_{symbols} {}

  FailureSign of(TraceeAddr to) {
    const auto [known, is_new] = signs_.try_emplace(to, FailureSign::kNone);
    if (is_new) {
      const FunctionRef function = symbols_.at(to);
      if (function.known() && function.entry == to) {
        known->second = failure_sign(symbols_.function_name(function.id));
      }
    }
    return known->second;
  }

 private:
  Symbols& symbols_;
  std::unordered_map<TraceeAddr, FailureSign> signs_;  // By where a branch led.
};

}  // namespace

std::uint64_t records_since_failure(const TraceArchive& archive, std::uint32_t tid,
                                    std::uint64_t most, FailureSign least, Symbols& symbols) {
  BranchSigns signs{symbols};
  std::uint64_t records = 0;
  std::array<std::uint64_t, 1U + static_cast<unsigned>(FailureSign::kReport)> oldest{};
  std::array<std::uint64_t, oldest.size()> newest{};  // Both count from 1; 0 if there is none.
  archive.visit(tid, most, [&](std::span<const Record> some) {
    for (const Record& record : some) {
      ++records;
      const auto sign = static_cast<unsigned>(signs.of(record.to));
      if (oldest[sign] == 0) oldest[sign] = records;
      newest[sign] = records;
    }
  });
  // A weaker sign often comes without a failure: of these the newest counts, not the oldest.
  constexpr auto kSureSign = static_cast<unsigned>(FailureSign::kSure);
  std::uint64_t found = oldest[kSureSign];
  for (auto sign = kSureSign; sign-- > static_cast<unsigned>(least) && found == 0;) {
    found = newest[sign];
  }
  return found == 0 ? 0 : records - found + 1;
}

unsigned failure_weight(const TraceArchive& archive, std::uint32_t tid, std::uint64_t most,
                        Symbols& symbols) {
  BranchSigns signs{symbols};
  unsigned seen = 0;
  archive.visit(tid, most, [&](std::span<const Record> some) {
    for (const Record& record : some) seen |= 1U << static_cast<unsigned>(signs.of(record.to));
  });
  return seen & ~1U;  // Stronger signs are higher bits; the lowest says nothing.
}

TraceeAddr made_at(std::span<const Call> calls, std::size_t index) {
  for (std::size_t i = index; calls[index].begin == CallBegin::kTailCalled && i-- > 0;) {
    if (calls[i].parent != calls[index].parent || calls[i].end != CallEnd::kTailCalled ||
        calls[i].end_position != calls[index].begin_position) {
      continue;
    }
    index = i;
  }
  return calls[index].site;
}

std::size_t report_call(std::span<const Call> calls, Symbols& symbols, std::uint64_t position) {
  std::size_t innermost = kNoCall;
  for (std::size_t i = 0; i < calls.size() && calls[i].begin_position <= position; ++i) {
    if (calls[i].end_position > position) innermost = i;
  }
  if (innermost == kNoCall) return kNoCall;
  std::size_t outermost = innermost;
  for (std::size_t at = calls[innermost].parent; at != kNoCall; at = calls[at].parent) {
    if (!is_runtime(calls[at], symbols)) break;
    outermost = at;
  }
  return outermost;
}

}  // namespace backtrail::decoder
