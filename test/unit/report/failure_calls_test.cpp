// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/failure_calls.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

TEST(FailureSign, IsAsStrongAsTheNameIsClear) {
  for (const char* name :
       {"core::panicking::panic_bounds_check", "core::panicking::panic_fmt::h0123456789abcdef",
        "std::panicking::begin_panic_handler", "__assert_fail", "abort", "std::terminate()",
        "__stack_chk_fail", "__asan_report_load4", "__asan::ReportDoubleFree(unsigned long)",
        "__ubsan_handle_add_overflow", "__tsan::ReportRace(__tsan::ThreadState*)"}) {
    EXPECT_EQ(failure_sign(name), FailureSign::kSure) << name;
  }
  for (const char* name :
       {"__cxa_throw", "pthread_exit", "std::__throw_out_of_range(char const*)"}) {
    EXPECT_EQ(failure_sign(name), FailureSign::kLeave) << name;
  }
  for (const char* name :
       {"check_failed(char const*)", "my::Panic<int>::raise_panic(int)",
        "(anonymous namespace)::check_failed(int)", "void my::Tests<int, 3>::fail<int>(int)",
        "<my::Check as core::ops::FnOnce<()>>::assert_it", "std::pair<int, int> my::fatal<2>()"}) {
    EXPECT_EQ(failure_sign(name), FailureSign::kName) << name;
  }
  for (const char* name : {"main", "std::panicking::try", "fail::run(int)", "sort(assertion)",
                           "void my::run<my::Failure>(int)", "(anonymous namespace)::run(fail)",
                           "my::Failures::operator<(my::Failures const&)"}) {
    EXPECT_EQ(failure_sign(name), FailureSign::kNone) << name;
  }
}

/// No code has variables.
class NoVariables final : public VariableReader {
 public:
  std::vector<FrameVariables> at(TraceeAddr, FrameState&) override { return {}; }
  std::vector<PlacedVariable> find(TraceeAddr, const std::string&, FrameState&) override {
    return {};
  }
  std::vector<PlacedVariable> find_global(const std::string&, FrameState&) override { return {}; }
  std::optional<TraceeAddr> after_prologue(TraceeAddr) override { return std::nullopt; }
  std::optional<std::vector<Variable>> arguments(TraceeAddr, FrameState&, FrameState*) override {
    return std::nullopt;
  }
  std::optional<Variable> result(TraceeAddr, FrameState&) override { return std::nullopt; }
  std::string problem(TraceeAddr) override { return {}; }
  std::unique_ptr<FrameState> caller(TraceeAddr, FrameState&) override { return nullptr; }
};

class Names final : public Symbols {
 public:
  FunctionRef at(TraceeAddr /*address*/) override { return {}; }
  const std::string& function_name(std::uint32_t id) override { return names[id]; }
  SourceLine line_at(TraceeAddr /*address*/) override { return {}; }
  const std::vector<CodeFrame>& frames_at(TraceeAddr /*address*/) override { return frames; }
  const std::string& text(std::uint32_t /*id*/) const override { return empty; }
  std::string module_place(TraceeAddr /*address*/) const override { return "program+0x1"; }
  Stack unwind(const arch::x86::DwarfRegisters& /*registers*/,
               const ReadMemory& /*memory*/) override {
    return {};
  }
  VariableReader& variables() override { return no_variables; }

  std::uint32_t id_of(const std::string& name) {
    for (const auto& [id, known] : names) {
      if (known == name) return id;
    }
    const auto id = static_cast<std::uint32_t>(names.size() + 1);
    names[id] = name;
    return id;
  }
  NoVariables no_variables;
  std::map<std::uint32_t, std::string> names;
  std::vector<CodeFrame> frames;
  std::string empty;
};

class FailureCalls : public testing::Test {
 protected:
  std::size_t add(const std::string& name, std::size_t parent, std::uint64_t begin,
                  std::uint64_t end, CallEnd how = CallEnd::kReturned) {
    Call call;
    call.function.id = names.id_of(name);
    call.parent = parent;
    call.begin_position = begin;
    call.end_position = end;
    call.end = how;
    call.site = TraceeAddr{0x1000 + begin};
    calls.push_back(call);
    return calls.size() - 1;
  }
  Names names;
  std::vector<Call> calls;
};

/// The trace has a gap where a panic prints its message; the function after it belongs to the
/// panic.
TEST_F(FailureCalls, WhatIsOpenBehindAGapIsTheFailureBeforeIt) {
  const std::size_t main = add("main", kNoCall, 1, 20, CallEnd::kGap);
  const std::size_t panic = add("core::panicking::panic", main, 2, 20, CallEnd::kGap);
  const std::size_t hook = add("std::panicking::rust_panic_with_hook", kNoCall, 21, 90);
  calls[hook].begin = CallBegin::kUnseen;
  calls[hook].site = {};
  EXPECT_EQ(find_failure(calls, names, FailureSign::kName, false).index, panic);
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(hook));
  EXPECT_EQ(find_failure(calls, names, FailureSign::kName, false).index, 0U);
}

/// A noexcept function that is left, or a thread whose exception nobody catches.
TEST_F(FailureCalls, WhoThrewWhatNobodyCatchesIsTheCause) {
  const std::size_t main = add("main", kNoCall, 1, 20, CallEnd::kOpen);
  const std::size_t helper =
      add("std::__throw_out_of_range(char const*)", main, 2, 20, CallEnd::kOpen);
  const std::size_t thrown = add("__cxa_throw", helper, 3, 20, CallEnd::kOpen);
  const std::size_t end = add("std::terminate()", thrown, 4, 20, CallEnd::kOpen);
  add("abort", end, 5, 20, CallEnd::kOpen);
  EXPECT_EQ(find_failure(calls, names, FailureSign::kLeave, true).index, helper);
  EXPECT_EQ(find_failure(calls, names, FailureSign::kLeave, true).sign, FailureSign::kSure);
}

TEST_F(FailureCalls, TheNewestOfTheStrongestCounts) {
  const std::size_t main = add("main", kNoCall, 1, 100, CallEnd::kOpen);
  add("core::panicking::panic", main, 2, 10, CallEnd::kUnwound);
  const std::size_t newest = add("core::panicking::panic_fmt", main, 20, 40, CallEnd::kUnwound);
  add("rust_panic", newest, 25, 40, CallEnd::kUnwound);
  add("__cxa_throw", main, 50, 60);
  EXPECT_EQ(find_failure(calls, names, FailureSign::kName, false).index, newest);
  EXPECT_EQ(find_failure(calls, names, FailureSign::kName, false).sign, FailureSign::kSure);
  EXPECT_EQ(find_failure(calls, names, FailureSign::kName, true).index, kNoCall);
}

TEST_F(FailureCalls, AReportsOutermostCallIsTheRuntimes) {
  const std::size_t main = add("main", kNoCall, 1, 100, CallEnd::kOpen);
  add("__asan_report_load4", main, 5, 9);
  const std::size_t culprit = add("over(int*, int)", main, 10, 100, CallEnd::kOpen);
  const std::size_t outermost = add("__asan_report_load4", culprit, 20, 100, CallEnd::kOpen);
  add("__asan::ReportGenericError(unsigned long)", outermost, 21, 100, CallEnd::kOpen);
  EXPECT_EQ(report_call(calls, names, 21), outermost);
  EXPECT_EQ(report_call(calls, names, 0), kNoCall);
}

TEST_F(FailureCalls, AJumpStandsForTheCallBeforeIt) {
  const std::size_t main = add("main", kNoCall, 1, 100, CallEnd::kOpen);
  const std::size_t called = add("stub", main, 10, 12, CallEnd::kTailCalled);
  const std::size_t jumped = add("abort", main, 12, 100, CallEnd::kOpen);
  calls[jumped].begin = CallBegin::kTailCalled;
  EXPECT_EQ(made_at(calls, jumped), calls[called].site);
  EXPECT_EQ(made_at(calls, called), calls[called].site);
}

}  // namespace
}  // namespace backtrail::decoder
