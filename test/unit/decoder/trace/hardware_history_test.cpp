// SPDX-License-Identifier: Apache-2.0
// Tests the classes that keep and join the hardware's bytes: packets for a debugger, snapshots,
// branch stacks, and records that do not join.

#include <array>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/perf/continuity_filter.hpp"
#include "decoder/perf/snapshot_reader.hpp"
#include "decoder/pt/pt_packets.hpp"
#include "decoder/pt/pt_raw_history.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "test/support/ipt_oracle.hpp"

namespace backtrail::decoder {
namespace {

/// Code repeated every 16 bytes: nop; jne back to it; at the end a jump to itself.
class Loops : public CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    static constexpr std::array<std::uint8_t, 16> kCode{0x90, 0x75, 0xfd, 0x90, 0x90, 0x90,
                                                        0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
                                                        0x90, 0x90, 0xeb, 0xfe};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kCode[(address.value() + i) % 16];
    return out.size();
  }
};

constexpr TraceeAddr kLoop{0x1000};

/// Returns packets of `rounds` iterations of the loop after a PSB, with or without an end.
std::vector<std::uint8_t> stretch(int rounds, bool end) {
  std::vector<std::uint8_t> out;
  PacketState state;
  PacketWriter writer{state, out};
  writer.psb();
  writer.mode_exec(arch::Isa::kAmd64);
  writer.fup(kLoop);
  writer.psbend();
  for (int i = 0; i < rounds; ++i) writer.taken();
  writer.flush();
  if (end) {
    writer.fup(kLoop);
    writer.tip_pgd();
  }
  return out;
}

TEST(PtRawHistory, AHoleIsSeenByTheDecoder) {
  PtRawHistory history{1U << 16U};
  auto cut = stretch(6, false);
  cut.insert(cut.end(), {0x6d, 0x11, 0x22});  // An incomplete packet.
  history.append(cut);
  history.hole();
  history.append(stretch(3, true));
  Loops code;
  const auto items = test::decode_ipt(history.read_all(), code);
  std::size_t breaks = 0;
  for (const auto& item : items) breaks += item.kind != test::IptItem::Kind::kInsn ? 1 : 0;
  EXPECT_GE(breaks, 1U);
  EXPECT_LE(breaks, 2U);
  // libipt reads ahead and also drops the last packet before the hole; what follows is complete.
  EXPECT_GE(test::executed(items).size(), 1 + 2U * 3);
}

TEST(PtRawHistory, KeepsWholeStretchesWithinItsSize) {
  PtRawHistory history{4096};
  for (int i = 0; i < 1000; ++i) history.append(stretch(200, true));
  const auto bytes = history.read_all();
  EXPECT_LE(bytes.size(), 4096U);
  EXPECT_GT(bytes.size(), 3000U);
  EXPECT_EQ(find_psb(bytes), 0U);
  EXPECT_EQ(count_packets(bytes).errors, 0U);
  EXPECT_FALSE(history.changed());
  history.append(stretch(1, true));
  EXPECT_TRUE(history.changed());
  history.clear();
  EXPECT_TRUE(history.read_all().empty());
}

TEST(SnapshotReader, GivesWhatIsNewAtEveryPhase) {
  constexpr std::uint64_t kArea = 100;
  for (const std::uint64_t unit : {1U, 8U, 24U}) {
    const std::uint64_t grid = kArea / unit;
    for (std::uint64_t step = 1; step < 3 * grid; ++step) {
      perf::SnapshotReader reader{unit};
      std::vector<std::uint8_t> area(kArea, 0);
      std::uint64_t written = 0;
      std::uint64_t expected = 0;
      for (int round = 0; round < 9; ++round) {
        for (std::uint64_t i = 0; i < step; ++i, ++written)
          for (std::uint64_t b = 0; b < unit; ++b)
            area[written % grid * unit + b] = static_cast<std::uint8_t>(written % 250 + 1);
        const auto news = reader.look(area, written % grid * unit);
        // If the writer went round less than once, everything new is returned. Otherwise the
        // remaining bytes are, and a loss is reported.
        if (step < grid) {
          ASSERT_EQ(news.bytes.size(), step * unit) << unit << ' ' << step << ' ' << round;
          ASSERT_FALSE(news.lost);
        } else if (step > grid) {
          ASSERT_TRUE(news.lost);
          ASSERT_EQ(news.bytes.size(), grid * unit);
        }
        expected = written - news.bytes.size() / unit;
        for (std::uint64_t i = 0; i < news.bytes.size(); ++i)
          ASSERT_EQ(news.bytes[i], (expected + i / unit) % 250 + 1);
      }
    }
  }
}

class Sink : public TraceConsumer {
 public:
  void consume(std::span<const Record> batch) override {
    records.insert(records.end(), batch.begin(), batch.end());
  }
  std::vector<Record> records;
};

TEST(ContinuityFilter, MarksWhereRecordsDoNotJoin) {
  Loops code;
  InsnCache insns{code};
  Sink sink;
  perf::ContinuityFilter filter{insns, sink};
  const Record loop = branch(kLoop + 1, kLoop);
  const Record elsewhere = branch(TraceeAddr{0x2001}, TraceeAddr{0x2000});
  const std::vector<Record> records{gap(GapReason::kStart, {}, kLoop), loop, loop, elsewhere,
                                    elsewhere};
  filter.consume(records);
  filter.consume(std::vector{loop});
  EXPECT_EQ(filter.breaks(), 2U);
  ASSERT_EQ(sink.records.size(), 8U);
  EXPECT_EQ(sink.records[3], gap(GapReason::kUnseenAsync, kLoop, TraceeAddr{0x2001}));
  EXPECT_EQ(sink.records[6], gap(GapReason::kUnseenAsync, TraceeAddr{0x2000}, kLoop + 1));
  // An unconditional jump cannot fall through.
  filter.consume(std::vector{branch(kLoop + 17, kLoop)});
  EXPECT_EQ(filter.breaks(), 3U);
}

}  // namespace
}  // namespace backtrail::decoder
