// Calls from branch records, on a program of a few bytes.
#include "decoder/calls/call_rebuilder.hpp"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using ::testing::ElementsAre;

/// Functions of 0x100 bytes from 0x1000 on: a, b, c, ... In each the low byte of an address says
/// what stands there: 0x1n a call, 0x3n an indirect jump, 0x4n a return, 0x5n a system call.
class Program final : public CodeReader, public CodeMap {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    constexpr std::array<std::uint8_t, 5> kCall{0xe8, 0, 0, 0, 0};
    constexpr std::array<std::uint8_t, 2> kJump{0xff, 0xe0};
    constexpr std::array<std::uint8_t, 1> kReturn{0xc3};
    constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};
    if (address.value() >= 0xa000) return 0;
    std::fill(out.begin(), out.end(), std::uint8_t{0x90});
    const auto put = [&](std::span<const std::uint8_t> code) {
      std::copy_n(code.begin(), std::min(code.size(), out.size()), out.begin());
    };
    switch (address.value() >> 4U & 0xfU) {
      case 1:
        put(kCall);
        break;
      case 3:
        put(kJump);
        break;
      case 4:
        put(kReturn);
        break;
      case 5:
        put(kSystemCall);
        break;
      default:
        break;
    }
    return out.size();
  }
  FunctionRef at(TraceeAddr address) override {
    const std::uint64_t value = address.value();
    if (value < 0x1000 || value >= 0x2a00) return {};
    const auto id = static_cast<std::uint32_t>((value - 0x1000) / 0x100 + 1);
    return {id, TraceeAddr{value & ~0xffULL}, id == 'p' - 'a' + 1};
  }
};

/// The place `offset` of function `name`.
TraceeAddr in(char name, std::uint64_t offset = 0) {
  return TraceeAddr{0x1000 + static_cast<std::uint64_t>(name - 'a') * 0x100 + offset};
}

std::string show(const Call& call) {
  constexpr std::string_view kBegin = "(~!?+";
  constexpr std::string_view kEnd = ")~^#.|";
  const char name = call.function.known() ? static_cast<char>('a' + call.function.id - 1) : '?';
  return std::string(call.depth, '-') + kBegin[static_cast<std::size_t>(call.begin)] + name +
         kEnd[static_cast<std::size_t>(call.end)];
}

std::vector<std::string> calls(const std::vector<Record>& records) {
  Program program;
  InsnCache insns{program};
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  std::vector<std::string> out;
  for (const Call& call : rebuilder.finish()) out.push_back(show(call));
  return out;
}

Record start(char name) {
  return gap(GapReason::kStart, TraceeAddr{}, in(name, 1));
}
constexpr std::uint64_t kCallAt = 0x10;
constexpr std::uint64_t kBehindCall = 0x15;
Record call(char from, char to) {
  return branch(in(from, kCallAt), in(to));
}
Record ret(char from, char to) {
  return branch(in(from, 0x40), in(to, kBehindCall));
}

TEST(CallRebuilder, CallsNest) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'c'), ret('c', 'b'), ret('b', 'a')}),
              ElementsAre("?a.", "-(b)", "--(c)"));
}

TEST(CallRebuilder, OpenCallsAreTheStackOfTheCrash) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'c')}),
              ElementsAre("?a.", "-(b.", "--(c."));
}

TEST(CallRebuilder, ATraceThatBeginsInTheMiddleGrowsDownwards) {
  EXPECT_THAT(calls({start('c'), call('c', 'd'), ret('d', 'c'), ret('c', 'b'), ret('b', 'a')}),
              ElementsAre("?a.", "-?b)", "--?c)", "---(d)"));
}

TEST(CallRebuilder, RecursionIsMatchedByAddress) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'b'), call('b', 'b'), ret('b', 'b'),
                     ret('b', 'b'), ret('b', 'a')}),
              ElementsAre("?a.", "-(b)", "--(b)", "---(b)"));
}

TEST(CallRebuilder, ATailCallTakesThePlaceOfItsCaller) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), branch(in('b', 0x30), in('c')), ret('c', 'a')}),
              ElementsAre("?a.", "-(b~", "-~c)"));
}

TEST(CallRebuilder, AStubIsTheFunctionItLeadsTo) {
  EXPECT_THAT(calls({start('a'), call('a', 'p'), branch(in('p', 0x30), in('c')), ret('c', 'a')}),
              ElementsAre("?a.", "-(c)"));
}

TEST(CallRebuilder, AnExceptionLeavesEverythingUpToItsHandler) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'c'), call('c', 'd'),
                     branch(in('d', 0x30), in('b', 0x60)), ret('b', 'a')}),
              ElementsAre("?a.", "-(b)", "--(c^", "---(d^"));
}

TEST(CallRebuilder, AReturnToALandingPadToo) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'c'),
                     branch(in('c', 0x40), in('a', 0x60)), call('a', 'd')}),
              ElementsAre("?a.", "-(b^", "--(c^", "-(d."));
}

/// Function b switches stacks, as swapcontext does.
TEST(CallRebuilder, AStackThatIsSwitchedBackToGoesOn) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), branch(in('b', 0x40), in('c')), call('c', 'd'),
                     call('d', 'b'), ret('b', 'a'), call('a', 'b'), ret('b', 'd'), ret('d', 'c')}),
              ElementsAre("?a.", "-(b~", "-~c|", "--(d|", "---(b|", "-(b|", "-+c.", "--+d)"));
}

TEST(CallRebuilder, TwoStacksTakeTurns) {
  std::vector<Record> records{start('a'),
                              call('a', 'b'),
                              branch(in('b', 0x40), in('c')),
                              call('c', 'b'),
                              branch(in('b', 0x40), in('d')),
                              call('d', 'b')};
  for (int i = 0; i < 2; ++i) {
    const std::vector<Record> turn{ret('b', 'c'), call('c', 'b'), ret('b', 'd'), call('d', 'b')};
    records.insert(records.end(), turn.begin(), turn.end());
  }
  records.push_back(ret('b', 'a'));
  EXPECT_EQ(calls(records).back().substr(0, 2), "--") << "a is all that is left";
  EXPECT_EQ(calls(records).front(), "?a.");
}

TEST(CallRebuilder, AnOverwrittenReturnAddressHidesNoCaller) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), branch(in('b', 0x40), TraceeAddr{0xb000})}),
              ElementsAre("?a.", "-(b~", "-~?."));
}

TEST(CallRebuilder, CodeThatCannotBeReadInventsNothing) {
  const TraceeAddr nowhere{0xa000};
  EXPECT_THAT(
      calls({start('a'), call('a', 'b'), branch(in('b', 0x30), nowhere),
             branch(nowhere + 8, nowhere + 16), branch(nowhere + 16, in('c')), call('c', 'd'),
             ret('d', 'c'), branch(in('c', 0x40), nowhere + 20), branch(nowhere + 24, nowhere)}),
      ElementsAre("?a#", "-(b~", "-~?#", "??.", "-?c)", "--(d)"));
  EXPECT_THAT(
      calls({start('a'), branch(in('a', kCallAt), nowhere), branch(nowhere + 8, nowhere + 16),
             branch(nowhere + 24, in('a', kBehindCall)), call('a', 'b')}),
      ElementsAre("?a.", "-(?)", "-(b."));
}

TEST(CallRebuilder, ASignalHandlerReturnsToWhatItInterrupted) {
  EXPECT_THAT(
      calls({start('a'), call('a', 'b'), async_transfer(in('b', 5), in('h')), call('h', 'c'),
             ret('c', 'h'), branch(in('h', 0x50), in('b', 5)), ret('b', 'a')}),
      ElementsAre("?a.", "-(b)", "--!h)", "---(c)"));
}

TEST(CallRebuilder, AHandlerThatJumpsOutIsLeft) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), async_transfer(in('b', 5), in('h')),
                     branch(in('h', 0x30), in('a', 0x60)), call('a', 'd')}),
              ElementsAre("?a.", "-(b^", "--!h^", "-(d."));
}

TEST(CallRebuilder, AGapEndsWhatWasKnown) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'),
                     gap(GapReason::kOverflow, TraceeAddr{}, in('c', 3)), ret('c', 'a')}),
              ElementsAre("?a#", "-(b#", "?a.", "-?c)"));
}

TEST(CallRebuilder, ACallOfTheNextInstructionIsNone) {
  EXPECT_THAT(calls({start('a'), branch(in('a', kCallAt), in('a', kBehindCall))}),
              ElementsAre("?a."));
}

TEST(CallRebuilder, CodeThatNobodyKnowsIsCalledAllTheSame) {
  const TraceeAddr unknown{0x9000};
  EXPECT_THAT(calls({start('a'), branch(in('a', kCallAt), unknown),
                     branch(TraceeAddr{0x9040}, in('a', kBehindCall))}),
              ElementsAre("?a.", "-(?)"));
}

TEST(CallRebuilder, DeepStacksTakeNoRecursionOfOurs) {
  std::vector<Record> records{start('a')};
  for (int i = 0; i < 200'000; ++i) records.push_back(call('b', 'b'));
  EXPECT_EQ(calls({records.begin(), records.begin() + 3}).size(), 3U);
  Program program;
  InsnCache insns{program};
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  EXPECT_EQ(rebuilder.finish().back().depth, 200'000U);
}

}  // namespace
}  // namespace backtrail::decoder
