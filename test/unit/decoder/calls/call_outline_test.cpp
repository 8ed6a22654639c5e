// SPDX-License-Identifier: Apache-2.0
// Calls reported one by one must equal the calls of the list.
#include "decoder/calls/call_outline.hpp"

#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decoder/calls/call_follower.hpp"
#include "decoder/calls/call_rebuilder.hpp"
#include "test/support/effort.hpp"
#include "test/unit/decoder/letter_program.hpp"

namespace backtrail::decoder {
namespace {

using test::in;

std::string begin_of(const Call& call) {
  return fmt::format("B{:x} {} of {:x} at {}\n", call.first.value(), call.function.id,
                     call.site.value(), call.begin_position);
}

std::string end_of(const Call& call) {
  return fmt::format("E{:x} {} by {} at {}\n", call.first.value(), call.function.id,
                     static_cast<int>(call.end), call.end_position);
}

std::string told(const std::vector<Record>& records) {
  test::LetterProgram program;
  InsnCache insns{program};
  CallOutline outline{program};
  CallFollower first{insns, program, outline};
  first.feed(records);
  first.finish();
  std::string out;
  const OrderedCalls::Tell begins = [&](const Call& call) { out += begin_of(call); };
  const OrderedCalls::Tell ends = [&](const Call& call) { out += end_of(call); };
  OrderedCalls ordered{outline, program, begins, ends};
  CallFollower second{insns, program, ordered};
  second.feed(records);
  second.finish();
  return out;
}

std::string listed(const std::vector<Record>& records) {
  test::LetterProgram program;
  InsnCache insns{program};
  CallRebuilder rebuilder{insns, program};
  rebuilder.feed(records);
  std::vector<Call> calls = rebuilder.finish();
  drop_lazy_binding(calls, program);
  std::string out;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i <= calls.size(); ++i) {
    const std::size_t caller = i == calls.size() ? kNoCall : calls[i].parent;
    for (; !open.empty() && open.back() != caller; open.pop_back())
      out += end_of(calls[open.back()]);
    if (i == calls.size()) break;
    out += begin_of(calls[i]);
    open.push_back(i);
  }
  return out;
}

/// Makes records of likely and of impossible behaviour.
class RandomRecords {
 public:
  explicit RandomRecords(unsigned seed) : random_{seed} {}

  std::vector<Record> make(std::size_t count) {
    std::vector<Record> out{test::start('d')};
    while (out.size() < count) out.push_back(next());
    return out;
  }

 private:
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_()) % end; }
  /// Few functions, so that they recur; the last one is a stub.
  char function() { return "abcdep"[below(6)]; }
  Record to(char function, const Record& record) {
    at_ = function;
    return record;
  }

  Record next() {
    const char there = function();
    switch (below(16)) {
      case 0:
        return to(there, gap(GapReason::kOverflow, TraceeAddr{}, in(there, 3)));
      case 1:
        return to(there, async_transfer(in(at_, 5), in(there)));
      case 2:
        return to(there, branch(in(at_, 0x50), in(there, 5)));
      case 3:
        return to(there, branch(in(at_, 0x30), in(there, 0x60)));
      case 4:
        return to(there, branch(in(at_, 0x40), in(there)));
      case 5:
        return branch(in(at_, 0x30), TraceeAddr{0xb000});
      case 6:
      case 7:
        return to(there, branch(in(at_, 0x30), in(there)));
      case 8:
      case 9:
      case 10:
      case 11:
        return to(there, test::call(at_, there));
      default:
        return to(there, test::ret(at_, there));
    }
  }

  std::mt19937 random_;
  char at_ = 'd';
};

TEST(CallOutline, CallsAreToldAsTheListHasThem) {
  constexpr unsigned kTraces = test::cases(2000);
  for (unsigned seed = 0; seed < kTraces; ++seed) {
    const auto records = RandomRecords{seed}.make(2 + seed % 200);
    ASSERT_EQ(told(records), listed(records)) << "seed " << seed;
  }
}

/// The stub's function shows when its callee has returned, or has not.
TEST(CallOutline, AStubThatMadeCallsHasItsLastName) {
  for (const char back : {'p', 'a'}) {
    const std::vector<Record> records{
        test::start('a'),     test::call('a', 'p'),           test::call('p', 'b'),
        test::ret('b', back), branch(in('p', 0x30), in('c')), test::ret('c', 'a')};
    EXPECT_EQ(told(records), listed(records));
  }
}

TEST(CallOutline, CallersThatShowLateComeFirst) {
  const std::vector<Record> records{test::start('c'),    test::call('c', 'd'), test::ret('d', 'c'),
                                    test::ret('c', 'b'), test::ret('b', 'a'),  test::start('b'),
                                    test::ret('b', 'a'), test::call('a', 'b')};
  const std::string text = told(records);
  EXPECT_EQ(text.substr(0, 5), "B1015");
  EXPECT_EQ(text, listed(records));
}

}  // namespace
}  // namespace backtrail::decoder
