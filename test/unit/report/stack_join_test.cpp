// SPDX-License-Identifier: Apache-2.0
// Tests adding callers from the stack to the calls of a trace, with a program of a few bytes.
#include "decoder/report/stack_join.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/calls/call_rebuilder.hpp"
#include "test/unit/decoder/letter_program.hpp"

namespace backtrail::decoder {
namespace {

using test::call;
using test::in;
using test::kBehindCall;
using test::ret;
using test::start;
using ::testing::ElementsAre;

/// The program's code, repeated every 256 bytes.
class Bytes final : public CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t at = (address.value() + i) & 0xffU;
      out[i] = at == 0x10 ? 0xe8 : at > 0x10 && at < kBehindCall ? 0 : at == 0x40 ? 0xc3 : 0x90;
    }
    return out.size();
  }
};

StackFrame at(char name) {
  return {.pc = in(name, 0x20)};
}
StackFrame returns_to(char name, std::uint64_t offset = kBehindCall) {
  return {.pc = in(name, offset), .is_return = true};
}
StackFrame handler_returns_to(char name) {
  return {.pc = in(name, 0x20), .is_return = true, .is_signal_frame = true};
}

struct Joined {
  JoinedStack stack;
  std::vector<std::string> calls;  ///< Dashes for depth; "*": from the stack; "!": a handler.
};

Joined join(const std::vector<Record>& records, const Stack& stack) {
  Bytes bytes;
  test::LetterProgram program;
  InsnCache insns{bytes};
  ThreadCalls traced;
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  traced.open = rebuilder.open();
  traced.calls = rebuilder.finish();
  Joined out;
  out.stack = join_stack(stack, traced, insns, program);
  for (std::size_t i = 0; i < traced.calls.size(); ++i) {
    const Call& one = traced.calls[i];
    EXPECT_TRUE(one.parent == kNoCall
                    ? one.depth == 0
                    : one.parent < i && one.depth == traced.calls[one.parent].depth + 1);
    out.calls.push_back(std::string(one.depth, '-') + static_cast<char>('a' + one.function.id - 1) +
                        (one.begin == CallBegin::kSignal ? "!" : "") + (one.from_stack ? "*" : ""));
  }
  return out;
}

TEST(StackJoin, CallersStandAroundWhatTheTraceBeginsIn) {
  const Joined joined =
      join({start('c'), call('c', 'e'), ret('e', 'c'), call('c', 'd')},
           {{at('d'), returns_to('c'), returns_to('b'), returns_to('a')}, StackEnd::kOutermost});
  EXPECT_EQ(joined.stack.result, JoinedStack::Result::kComplete);
  EXPECT_THAT(joined.calls, ElementsAre("a*", "-b*", "--c", "---e", "---d"));
}

TEST(StackJoin, TheyStandBehindWhatEndedBefore) {
  const Joined joined =
      join({start('e'), call('e', 'f'), gap(GapReason::kOverflow, TraceeAddr{}, in('b', 1), 7)},
           {{at('b'), returns_to('a')}, StackEnd::kOutermost});
  EXPECT_THAT(joined.calls, ElementsAre("e", "-f", "a*", "-b"));
}

TEST(StackJoin, WithoutATraceTheStackIsAll) {
  EXPECT_THAT(join({}, {{at('b'), returns_to('a')}, StackEnd::kOutermost}).calls,
              ElementsAre("a*", "-b*"));
}

TEST(StackJoin, NothingIsAddedWhereTheTraceHasTheWholeStack) {
  const Joined joined =
      join({start('a'), call('a', 'b')}, {{at('b'), returns_to('a')}, StackEnd::kOutermost});
  EXPECT_EQ(joined.stack.count, 0U);
  EXPECT_EQ(joined.stack.result, JoinedStack::Result::kComplete);
}

TEST(StackJoin, EachReturnAddressOfTheTraceMustBeThere) {
  const std::vector<Record> records{start('b'), call('b', 'c'), call('c', 'd')};
  const Joined other = join(records, {{at('d'), returns_to('e'), returns_to('b'), returns_to('a')},
                                      StackEnd::kOutermost});
  EXPECT_EQ(other.stack.result, JoinedStack::Result::kDisagrees);
  EXPECT_EQ(other.stack.by_call, in('c', kBehindCall));
  EXPECT_EQ(other.stack.by_stack, in('e', kBehindCall));
  EXPECT_THAT(other.calls, ElementsAre("b", "-c", "--d"));
  const Joined shorter = join(records, {{at('d')}, StackEnd::kUnreadable});
  EXPECT_EQ(shorter.stack.result, JoinedStack::Result::kDisagrees);
  const Joined unknown = join(records, {{at('d')}, StackEnd::kNoUnwindInfo});
  EXPECT_EQ(unknown.stack.result, JoinedStack::Result::kCut);
}

TEST(StackJoin, AFrameOfAnotherFunctionIsNoneOfTheTrace) {
  EXPECT_EQ(join({start('b')}, {{at('c'), returns_to('a')}, StackEnd::kOutermost}).stack.result,
            JoinedStack::Result::kDisagrees);
}

TEST(StackJoin, CallersEndWhereNothingWasCalled) {
  const Joined joined = join(
      {start('c')},
      {{at('c'), returns_to('b'), returns_to('e', 0x50), returns_to('a')}, StackEnd::kOutermost});
  EXPECT_EQ(joined.stack.result, JoinedStack::Result::kNoReturn);
  EXPECT_EQ(joined.stack.by_stack, in('e', 0x50));
  EXPECT_THAT(joined.calls, ElementsAre("b*", "-c"));
}

TEST(StackJoin, HandlersInterruptTheirCallers) {
  // The trace begins in a function called by a handler, or in the handler itself.
  const std::vector<StackFrame> frames{
      at('d'), returns_to('c'), handler_returns_to('r'), {.pc = in('b', 0x30)}, returns_to('a')};
  EXPECT_THAT(join({start('d')}, {frames, StackEnd::kOutermost}).calls,
              ElementsAre("a*", "-b*", "--c!*", "---d"));
  EXPECT_THAT(join({start('c'), call('c', 'd')}, {frames, StackEnd::kOutermost}).calls,
              ElementsAre("a*", "-b*", "--c!", "---d"));
  // The trace includes the signal.
  const Joined seen =
      join({start('b'), {in('b', 0x30), in('c'), RecordKind::kAsync}, call('c', 'd')},
           {frames, StackEnd::kOutermost});
  EXPECT_THAT(seen.calls, ElementsAre("a*", "-b", "--c!", "---d"));
}

}  // namespace
}  // namespace backtrail::decoder
