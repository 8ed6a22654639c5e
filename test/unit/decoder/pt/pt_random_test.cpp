// SPDX-License-Identifier: Apache-2.0
// Runs random programs on the test's own machine, encodes them, and decodes them with libipt: the
// result must be what ran.

#include <algorithm>

#include <gtest/gtest.h>

#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_history.hpp"
#include "test/support/effort.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {
namespace {

using decoder::InsnCache;
using decoder::PtEncoder;
using decoder::PtHistory;

constexpr unsigned kPrograms = cases(120);

struct Case {
  arch::Isa isa;
  ToyHabits habits;
  const char* name;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class PtRandom : public testing::TestWithParam<Case> {};

/// Returns success if both are equal; otherwise describes the first difference with its
/// surroundings.
testing::AssertionResult same(std::span<const IptItem> expected, std::span<const IptItem> actual) {
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (e == expected.end() && a == actual.end()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  const auto at = e - expected.begin();
  failure << "item " << at << " of " << expected.size() << " differs; before it:";
  for (auto i = std::max<std::ptrdiff_t>(at - 5, 0); i < at; ++i) {
    failure << ' ' << expected[static_cast<std::size_t>(i)];
  }
  failure << "; expected " << (e == expected.end() ? IptItem{} : *e) << ", got "
          << (a == actual.end() ? IptItem{} : *a) << " (" << actual.size() << " items)";
  return failure;
}

testing::AssertionResult ends_with(const std::vector<IptItem>& all,
                                   const std::vector<IptItem>& end) {
  if (end.size() > all.size()) return testing::AssertionFailure() << "longer than what ran";
  return same(std::span{all}.last(end.size()), end);
}

TEST_P(PtRandom, SaysWhatRanAtEveryReadingPoint) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Random random{seed};
    ToyProgram program{GetParam().isa, random};
    ToyMachine machine{program, random, GetParam().habits};
    InsnCache insns{program};
    PtEncoder encoder{insns};
    std::vector<std::uint8_t> packets;
    for (int part = 0; part < 6; ++part) {
      machine.run(pick(random, 120));
      encoder.encode(machine.take_records(), packets);
      std::vector<std::uint8_t> whole = packets;
      encoder.finish(machine.pc(), whole);
      ASSERT_TRUE(same(machine.history(), decode_ipt(whole, program)))
          << "seed " << seed << " part " << part << ": " << packet_names(whole);
      if (pick(random, 3) == 0) encoder.synchronize(packets);
    }
  }
}

TEST_P(PtRandom, DecodingMayBeginAtAnySynchronization) {
  for (unsigned seed = 0; seed < kPrograms / 3; ++seed) {
    Random random{seed};
    ToyProgram program{GetParam().isa, random};
    ToyMachine machine{program, random, GetParam().habits};
    InsnCache insns{program};
    PtEncoder encoder{insns};
    std::vector<std::uint8_t> packets;
    std::vector<std::size_t> points;
    for (int part = 0; part < 5; ++part) {
      machine.run(pick(random, 200));
      encoder.encode(machine.take_records(), packets);
      encoder.flush(packets);
      points.push_back(packets.size());
      encoder.synchronize(packets);
    }
    encoder.finish(machine.pc(), packets);
    for (const std::size_t point : points) {
      const std::vector<IptItem> items = decode_ipt(std::span{packets}.subspan(point), program);
      ASSERT_TRUE(ends_with(machine.history(), items)) << "seed " << seed << " from " << point;
    }
  }
}

TEST_P(PtRandom, HistoryKeepsTheNewestPart) {
  std::uint64_t overwritten_bytes = 0;
  for (unsigned seed = 0; seed < kPrograms / 12; ++seed) {
    Random random{seed};
    ToyProgram program{GetParam().isa, random};
    ToyMachine machine{program, random, GetParam().habits};
    InsnCache insns{program};
    const std::uint64_t size = 1024U << pick(random, 3);
    PtHistory history{insns, size};
    for (int part = 0; part < 4; ++part) {
      machine.run(pick(random, 6000));
      history.consume(machine.take_records());
      const std::vector<std::uint8_t> packets = history.read_all(machine.pc());
      ASSERT_LE(packets.size(), size);
      const std::vector<IptItem> items = decode_ipt(packets, program);
      ASSERT_TRUE(ends_with(machine.history(), items)) << "seed " << seed << " part " << part;
      if (history.overwritten_bytes() == 0) {
        ASSERT_EQ(items.size(), machine.history().size());
      } else {
        ASSERT_GE(packets.size(), size - size / 16 - 300);
      }
    }
    overwritten_bytes += history.overwritten_bytes();
  }
  EXPECT_NE(overwritten_bytes, 0U);
}

/// Checks that no item is an error.
testing::AssertionResult decodes(std::span<const IptItem> items) {
  for (const IptItem& item : items) {
    if (item.kind == IptItem::Kind::kError) return testing::AssertionFailure() << item;
  }
  return testing::AssertionSuccess();
}

TEST(PtHostile, CodeThatCannotBeReadLeavesGapsOnly) {
  std::size_t left_out = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Random random{seed};
    ToyProgram program{arch::Isa::kAmd64, random};
    ToyMachine machine{program, random, {.signals = 50}};
    const TraceeAddr hidden = program.functions()[pick(random, 9)] + pick(random, 60);
    program.hide(hidden, hidden + 1 + pick(random, 40));
    InsnCache insns{program};
    PtHistory history{insns, 1U << 20U};
    machine.run(400);
    history.consume(machine.take_records());
    const std::vector<IptItem> items = decode_ipt(history.read_all(machine.pc()), program);
    ASSERT_TRUE(decodes(items)) << "seed " << seed;
    // The decoded instructions are in order.
    auto from = machine.history().begin();
    for (const IptItem& item : items) {
      if (item.kind != IptItem::Kind::kInsn) continue;
      from = std::find(from, machine.history().end(), item);
      ASSERT_NE(from, machine.history().end()) << "seed " << seed;
      ++from;
    }
    left_out += machine.history().size() - executed(items).size();
  }
  EXPECT_NE(left_out, 0U);
}

TEST(PtHostile, RecordsThatMakeNoSenseStillDecode) {
  using decoder::RecordKind;
  for (unsigned seed = 0; seed < 2 * kPrograms; ++seed) {
    Random random{seed};
    ToyProgram program{seed % 2 == 0 ? arch::Isa::kAmd64 : arch::Isa::kI386, random};
    InsnCache insns{program};
    PtHistory history{insns, 1U << 20U};
    const auto anywhere = [&] {
      if (pick(random, 20) == 0) return TraceeAddr{random()};
      return program.functions()[pick(random, 9)] + pick(random, 100);
    };
    std::vector<decoder::Record> records;
    TraceeAddr at = program.functions()[0];
    for (std::size_t i = 0; i < 200; ++i) {
      decoder::Record record{at + pick(random, 20), anywhere()};
      if (pick(random, 4) == 0) record.from = anywhere();
      record.kind = static_cast<RecordKind>(pick(random, 6) == 0 ? pick(random, 3) : 0);
      record.reason = static_cast<decoder::GapReason>(pick(random, 7));
      at = record.to;
      records.push_back(record);
    }
    history.consume(records);
    ASSERT_TRUE(decodes(decode_ipt(history.read_all(anywhere()), program))) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, PtRandom,
    testing::Values(Case{arch::Isa::kAmd64, {}, "Amd64Plain"},
                    Case{arch::Isa::kAmd64, {.signals = 40}, "Amd64Signals"},
                    Case{arch::Isa::kAmd64, {.signals = 60, .gaps = 50}, "Amd64Gaps"},
                    Case{arch::Isa::kAmd64, {.signals = 1}, "Amd64SignalStorm"},
                    Case{arch::Isa::kAmd64, {.wild_returns = 2}, "Amd64WildReturns"},
                    Case{arch::Isa::kI386, {}, "I386Plain"},
                    Case{arch::Isa::kI386, {.signals = 60, .gaps = 50}, "I386Gaps"}),
    [](const testing::TestParamInfo<Case>& tested) { return std::string{tested.param.name}; });

}  // namespace
}  // namespace backtrail::test
