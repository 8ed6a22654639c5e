// SPDX-License-Identifier: Apache-2.0
// Tests rebuilding calls from branch records, with a program of a few bytes.
#include "decoder/calls/call_rebuilder.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/decoder/letter_program.hpp"

namespace backtrail::decoder {
namespace {

using test::call;
using test::in;
using test::kBehindCall;
using test::kCallAt;
using test::ret;
using test::start;
using ::testing::ElementsAre;

std::string show(const Call& call) {
  constexpr std::string_view kBegin = "(~!?+";
  constexpr std::string_view kEnd = ")~^#.|";
  const char name = call.function.known() ? static_cast<char>('a' + call.function.id - 1) : '?';
  return std::string(call.depth, '-') + kBegin[static_cast<std::size_t>(call.begin)] + name +
         kEnd[static_cast<std::size_t>(call.end)];
}

std::vector<std::string> calls(const std::vector<Record>& records) {
  test::LetterProgram program;
  InsnCache insns{program};
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  std::vector<std::string> out;
  for (const Call& call : rebuilder.finish()) out.push_back(show(call));
  return out;
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

/// Function b switches stacks as swapcontext does.
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

/// Acts like Go's scheduler: `from` waits in b, whose callee x leaves the stack; y continues
/// another one.
void wait_in_b(std::vector<Record>& records, char from) {
  for (const auto& [caller, callee] : {std::pair{from, 'b'}, {'b', 'x'}, {'x', 's'}, {'s', 'y'}}) {
    records.push_back(call(caller, callee));
  }
}
Record go_on_in_b() {
  return branch(in('y', 0x30), in('b', kBehindCall));
}

TEST(CallRebuilder, ASchedulersStacksDoNotCallEachOther) {
  std::vector<Record> records{start('a')};
  wait_in_b(records, 'a');
  records.push_back(branch(in('y', 0x30), in('c')));
  records.push_back(call('c', 'd'));
  EXPECT_THAT(calls(records), ElementsAre("?a|", "-(b|", "--(x|", "(s|", "-(y|", "(c.", "-(d."));
}

TEST(CallRebuilder, WhereAStackIsReturnedToTellsWhichOneGoesOn) {
  std::vector<Record> records{start('a')};
  wait_in_b(records, 'a');
  records.push_back(branch(in('y', 0x30), in('c')));
  wait_in_b(records, 'c');
  for (const char who : {'a', 'c'}) {
    records.push_back(go_on_in_b());
    records.push_back(ret('b', who));
    if (who == 'a') wait_in_b(records, who);
  }
  records.push_back(call('c', 'd'));
  const std::vector<std::string> all = calls(records);
  const std::vector<std::string> last(all.end() - 3, all.end());
  EXPECT_THAT(last, ElementsAre("+b)", "+c.", "-(d."));
  EXPECT_EQ(std::count(all.begin(), all.end(), "+a|"), 1);
  for (const std::string& call : all) EXPECT_LT(call.find_first_not_of('-'), 3U) << call;
}

TEST(CallRebuilder, StacksThatDifferFurtherOutAreToldApartThere) {
  // Both a and c wait in d, which waits in b.
  std::vector<Record> records{start('a')};
  for (const char who : {'a', 'c'}) {
    records.push_back(call(who, 'd'));
    wait_in_b(records, 'd');
    if (who == 'a') records.push_back(branch(in('y', 0x30), in('c')));
  }
  records.insert(records.end(), {go_on_in_b(), ret('b', 'd'), ret('d', 'a'), call('a', 'e')});
  const std::vector<std::string> all = calls(records);
  EXPECT_THAT(std::vector<std::string>(all.end() - 4, all.end()),
              ElementsAre("?d)", "-+b)", "+a.", "-(e."));
}

TEST(CallRebuilder, AStackThatIsNotKnownGrowsByItself) {
  std::vector<Record> records{start('a')};
  wait_in_b(records, 'a');
  records.insert(records.end(), {go_on_in_b(), ret('b', 'e'), ret('e', 'f')});
  EXPECT_THAT(calls(records),
              ElementsAre("?a|", "-(b|", "--(x|", "(s|", "-(y|", "?f.", "-?e)", "--+b)"));
}

TEST(CallRebuilder, StacksThatAreSwappedDoNotCallEachOther) {
  // All stacks rest in b; c begins as the second one.
  std::vector<Record> records{start('a'), call('a', 'b'), call('b', 'z'),
                              branch(in('z', 0x40), in('c'))};
  for (const char who : {'a', 'c', 'a'}) {
    records.insert(records.end(), {call(who == 'a' ? 'c' : 'a', 'b'), call('b', 'z'), ret('z', 'b'),
                                   ret('b', who)});
  }
  EXPECT_THAT(calls(records),
              ElementsAre("?a|", "-(b|", "--(z|", "(c|", "-(b|", "--(z|", "+b)", "+a|", "-(b|",
                          "--(z|", "+b)", "+c|", "-(b|", "--(z|", "+b)", "+a."));
}

TEST(CallRebuilder, TheOnlyStackThatWasLeftSomewhereGoesOnAtOnce) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'z'), branch(in('z', 0x40), in('c')),
                     call('c', 'd'), call('d', 'z'), ret('z', 'b'), call('b', 'e')}),
              ElementsAre("?a|", "-(b|", "--(z|", "(c|", "-(d|", "--(z|", "+a.", "-+b.", "--(e."));
}

TEST(CallRebuilder, AFunctionThatGetsMoreStackHasCalledNothing) {
  EXPECT_THAT(calls({start('a'), call('a', 'b'), call('b', 'e'), call('e', 'y'),
                     branch(in('y', 0x30), in('b', kBehindCall)), ret('b', 'a')}),
              ElementsAre("?a.", "-(b)", "--(e)", "---(y|"));
}

TEST(CallRebuilder, AHandlerPutsACallWhereItInterrupted) {
  EXPECT_THAT(
      calls({start('a'), call('a', 'b'), async_transfer(in('b', 5), in('h')),
             branch(in('h', 0x50), in('c')), branch(in('c', 0x40), in('b', 5)), ret('b', 'a')}),
      ElementsAre("?a.", "-(b)", "--!h)", "--(c)"));
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

TEST(CallRebuilder, ASignalHandlerReturnsToCodeThatNoSymbolBeginsAt) {
  EXPECT_THAT(
      calls({start('a'), call('a', 'b'), async_transfer(in('b', 5), in('h')),
             branch(in('h', 0x40), in('r', 1)), branch(in('r', 0x50), in('b', 5)), ret('b', 'a')}),
      ElementsAre("?a.", "-(b)", "--!h~", "--~r)"));
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
  test::LetterProgram program;
  InsnCache insns{program};
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  EXPECT_EQ(rebuilder.finish().back().depth, 200'000U);
}

}  // namespace
}  // namespace backtrail::decoder
