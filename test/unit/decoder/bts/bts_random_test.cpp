// SPDX-License-Identifier: Apache-2.0
// Runs random programs on the test's own machine, and a reader that joins blocks as gdb does. The
// reader must hold exactly what ran.

#include <algorithm>

#include <gtest/gtest.h>

#include "decoder/bts/bts_history.hpp"
#include "test/support/effort.hpp"
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {
namespace {

using decoder::Block;
using decoder::BtsHistory;
using decoder::InsnCache;
using decoder::kGapBlock;

constexpr unsigned kPrograms = cases(250);
constexpr std::uint64_t kGap = 1;  // Stands for a gap in a list of addresses.

/// gdb's side of a BTS trace: a list of addresses that ends with the present pc.
class Reader {
 public:
  explicit Reader(const ToyProgram& program) : program_{program} {}

  /// Enables tracing as "record btrace" does: the present pc is the first entry.
  void enable(TraceeAddr pc) { held_ = {pc.value()}; }

  /// Reads as gdb does: a delta, or else new blocks.
  void read(BtsHistory& history, TraceeAddr pc) {
    if (const auto delta = history.read_delta(pc)) {
      ++deltas_;
      return append(*delta);
    }
    const std::vector<Block> blocks = history.read_new(pc);
    if (blocks.empty()) return;
    held_.clear();
    add(blocks);
  }

  [[nodiscard]] const std::vector<std::uint64_t>& held() const { return held_; }
  [[nodiscard]] unsigned deltas() const { return deltas_; }

 private:
  void append(std::vector<Block> delta) {
    if (delta.empty()) return;
    const TraceeAddr last{held_.back()};
    Block& oldest = delta.back();
    ASSERT_EQ(oldest.begin, TraceeAddr{});
    if (oldest.end == last && delta.size() == 1) return;  // No progress.
    ASSERT_GE(oldest.end, last);
    oldest.begin = last;
    held_.pop_back();
    add(delta);
  }
  void add(const std::vector<Block>& blocks) {
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      if (*block == kGapBlock) {
        held_.push_back(kGap);
        continue;
      }
      const auto addresses = program_.expand(block->begin, block->end);
      ASSERT_FALSE(addresses.empty()) << block->begin.value() << " " << block->end.value();
      held_.insert(held_.end(), addresses.begin(), addresses.end());
    }
  }

  const ToyProgram& program_;
  std::vector<std::uint64_t> held_;
  unsigned deltas_ = 0;
};

/// Returns the addresses that the reader should hold: adjacent gaps are one, and none is at the
/// beginning.
std::vector<std::uint64_t> expected(const ToyMachine& machine) {
  std::vector<std::uint64_t> addresses;
  for (const IptItem& item : machine.history()) {
    if (item.kind == IptItem::Kind::kInsn) {
      addresses.push_back(item.address);
    } else if (!addresses.empty() && addresses.back() != kGap) {
      addresses.push_back(kGap);
    }
  }
  addresses.push_back(machine.pc().value());
  return addresses;
}

/// Returns the number of newest entries that agree.
std::size_t agreement(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  const auto limit = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rbegin() + limit, b.rbegin()).first -
                                  a.rbegin());
}

struct Case {
  ToyHabits habits;
  std::uint64_t records;
  const char* name;
};

void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class BtsRandom : public testing::TestWithParam<Case> {};

TEST_P(BtsRandom, AReaderHoldsWhatRan) {
  unsigned deltas = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Random random{seed};
    ToyProgram program{arch::Isa::kAmd64, random};
    ToyMachine machine{program, random, GetParam().habits};
    InsnCache insns{program};
    BtsHistory history{insns, GetParam().records * sizeof(decoder::Record)};
    Reader reader{program};
    reader.enable(machine.pc());
    for (int part = 0; part < 12; ++part) {
      machine.run(pick(random, 3) == 0 ? pick(random, 4) : pick(random, 200));
      history.consume(machine.take_records());
      if (pick(random, 3) == 0) continue;  // A stop at which gdb reads nothing.
      ASSERT_NO_FATAL_FAILURE(reader.read(history, machine.pc())) << "seed " << seed;
      const std::vector<std::uint64_t> all = expected(machine);
      const std::size_t agreed = agreement(all, reader.held());
      ASSERT_EQ(agreed, reader.held().size()) << "seed " << seed << " part " << part;
      if (history.overwritten() == 0) {
        ASSERT_EQ(agreed, all.size()) << "seed " << seed;
      }
    }
    deltas += reader.deltas();
  }
  EXPECT_GT(deltas, kPrograms);
}

TEST(BtsHostile, RecordsThatMakeNoSenseDoNoHarm) {
  unsigned with_gaps = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    Random random{seed};
    ToyProgram program{arch::Isa::kAmd64, random};
    InsnCache insns{program};
    BtsHistory history{insns, 100 * sizeof(decoder::Record)};
    const auto anywhere = [&] {
      if (pick(random, 20) == 0) return TraceeAddr{~std::uint64_t{random() % 32}};
      return program.functions()[pick(random, 9)] + pick(random, 100);
    };
    for (int part = 0; part < 20; ++part) {
      std::vector<decoder::Record> records(pick(random, 30));
      for (decoder::Record& record : records) {
        record = {anywhere(), anywhere(), static_cast<decoder::RecordKind>(pick(random, 3)),
                  static_cast<decoder::GapReason>(pick(random, 7))};
      }
      history.consume(records);
      const TraceeAddr pc = anywhere();
      const auto delta = history.read_delta(pc);
      if (delta && !delta->empty()) {
        ASSERT_EQ(delta->back().begin, TraceeAddr{});
        ASSERT_EQ(delta->front().end, pc);
      }
      const std::vector<Block> all = history.read_all(pc);
      ASSERT_EQ(all.empty(), history.records().size() == 0);
      if (all.empty()) continue;
      ASSERT_EQ(all.front().end, pc);
      ASSERT_NE(all.back(), kGapBlock);
      if (std::find(all.begin(), all.end(), kGapBlock) != all.end()) ++with_gaps;
    }
  }
  EXPECT_NE(with_gaps, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, BtsRandom,
                         testing::Values(Case{{}, 100'000, "Whole"}, Case{{}, 100, "Ring"},
                                         Case{{.signals = 20}, 100'000, "Signals"},
                                         Case{{.signals = 20}, 150, "SignalsRing"},
                                         Case{{.signals = 60, .gaps = 60}, 100'000, "Gaps"},
                                         Case{{.signals = 2}, 1000, "SignalStorm"}),
                         [](const testing::TestParamInfo<Case>& tested) {
                           return std::string{tested.param.name};
                         });

}  // namespace
}  // namespace backtrail::test
