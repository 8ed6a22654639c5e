// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/stack_values.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

/// The state of a frame of which nothing is known.
class UnknownState final : public FrameState {
 public:
  Known reg(unsigned number) override {
    (void)number;
    return {};
  }
  Known lane(unsigned number, unsigned lane) override {
    (void)number, (void)lane;
    return {};
  }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    (void)address, (void)out;
    return 0;
  }
};

/// The caller of code that does not exist: the call pushed nothing but the return address.
class CalledNowhere final : public FrameState {
 public:
  CalledNowhere(FrameState& callee, std::uint64_t pc) : callee_{callee}, pc_{pc} {}
  Known reg(unsigned number) override {
    if (number == kPc) return arch::cpu::values::known(pc_);
    Known value = callee_.reg(number);
    if (number == kRsp && value.all()) value.value += sizeof(std::uint64_t);
    return value;
  }
  Known lane(unsigned number, unsigned lane) override { return callee_.lane(number, lane); }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    return callee_.memory(address, out);
  }

 private:
  FrameState& callee_;
  std::uint64_t pc_;
};

std::unique_ptr<FrameState> called_nowhere(FrameState& callee, TraceeAddr back) {
  const auto sp = callee.reg(FrameState::kRsp);
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  if (!sp.all() || callee.memory(TraceeAddr{sp.value}, bytes) != bytes.size()) return nullptr;
  if (load_le<std::uint64_t>(bytes, 0) != back.value()) return nullptr;
  return std::make_unique<CalledNowhere>(callee, back.value());
}

class Reader {
 public:
  Reader(CodePlaces& places, Symbols& symbols, ReportStack& out)
      : places_{places}, symbols_{symbols}, out_{out} {}

  void add(const StackFrame& frame, FrameState& state) {
    const ReportPlace place = places_.place(frame.place());
    std::vector<FrameVariables> variables = symbols_.variables().at(frame.place(), state);
    if (variables.empty() && !frame.is_signal_frame) add_problem(frame.place());
    // Both lists begin with the innermost inlined function and end with the function itself.
    const std::size_t missing =
        place.frames.size() - std::min(place.frames.size(), variables.size());
    for (std::size_t i = 0; i < place.frames.size(); ++i) {
      ReportStackFrame one;
      one.frame = place.frames[i];
      one.address = frame.pc;
      one.module_place = place.module_place;
      one.is_handler_return = frame.is_signal_frame;
      if (i >= missing && i - missing < variables.size()) {
        one.variables = std::move(variables[i - missing]);
      }
      out_.frames.push_back(std::move(one));
    }
  }

 private:
  void add_problem(TraceeAddr place) {
    const std::string problem = symbols_.variables().problem(place);
    if (problem.empty() || std::ranges::find(out_.problems, problem) != out_.problems.end()) return;
    out_.problems.push_back(problem);
  }

  CodePlaces& places_;
  Symbols& symbols_;
  ReportStack& out_;
};

}  // namespace

ReportStack stack_values(const Stack& stack, const JoinedStack& joined, FrameState* end,
                         CodePlaces& places, Symbols& symbols) {
  using Result = JoinedStack::Result;
  ReportStack out;
  Reader reader{places, symbols, out};
  UnknownState unknown;
  std::vector<std::unique_ptr<FrameState>> callers;
  FrameState* state = end;
  const bool is_contradicted =
      joined.result == Result::kDisagrees || joined.result == Result::kNoReturn;
  const std::size_t count = std::min(stack.frames.size(), kMostValueFrames);
  for (std::size_t i = 0; i < count; ++i) {
    const StackFrame& frame = stack.frames[i];
    if (i > 0 && is_contradicted && frame.pc == joined.by_stack) return out;
    // Two ways to unwind must lead to one place.
    if (state != nullptr && state->reg(FrameState::kPc).value != frame.pc.value()) state = nullptr;
    reader.add(frame, state == nullptr ? unknown : *state);
    // The callers of main are the same in every program.
    if (out.frames.back().frame.function == "main") return out;
    if (out.frames.size() > 1 && out.frames.back().frame.function == "__libc_start_call_main") {
      out.frames.pop_back();
      return out;
    }
    if (state == nullptr || i + 1 == count) continue;
    auto caller = symbols.variables().caller(frame.place(), *state);
    if (caller == nullptr && i == 0) caller = called_nowhere(*state, stack.frames[1].pc);
    state = caller.get();
    callers.push_back(std::move(caller));
  }
  out.left_out = stack.frames.size() - count;
  return out;
}

}  // namespace backtrail::decoder
