// SPDX-License-Identifier: Apache-2.0
// Records that are encoded as Intel PT and decoded again must stay equal.

#include "decoder/pt/pt_decoder.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_record_stream.hpp"
#include "test/support/effort.hpp"
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {
namespace {

using decoder::GapReason;
using decoder::InsnCache;
using decoder::PtDecoder;
using decoder::PtEncoder;
using decoder::PtRecordStream;
using decoder::Record;

constexpr unsigned kPrograms = cases(60);
constexpr ToyHabits kSignals{.signals = 40};

class Sink : public decoder::TraceConsumer {
 public:
  void consume(std::span<const Record> records) override {
    all.insert(all.end(), records.begin(), records.end());
  }
  std::vector<Record> all;
};

std::string text(const Record& record) {
  return fmt::format("{:#x} -> {:#x} kind {} reason {}", record.from.value(), record.to.value(),
                     static_cast<int>(record.kind), static_cast<int>(record.reason));
}

/// Returns success if both are equal; otherwise describes the first difference.
testing::AssertionResult same(std::span<const Record> expected, std::span<const Record> actual) {
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  if (e == expected.end() && a == actual.end()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure();
  failure << "record " << e - expected.begin() << " of " << expected.size() << " differs ("
          << actual.size() << " decoded)";
  if (e != expected.begin()) failure << "; before it " << text(*(e - 1));
  failure << "; expected " << (e == expected.end() ? "no more" : text(*e));
  return failure << "; got " << (a == actual.end() ? "no more" : text(*a));
}

/// The run of a random program as records and packets.
struct RandomRun {
  Random random;
  ToyProgram program;
  ToyMachine machine;
  InsnCache insns{program};
  PtEncoder encoder{insns};
  std::vector<Record> records;  ///< The records that a decoder should return.
  std::vector<std::uint8_t> packets;

  explicit RandomRun(unsigned seed, arch::Isa isa = arch::Isa::kAmd64, ToyHabits habits = kSignals)
      : random{seed}, program{isa, random}, machine{program, random, habits} {}

  void go_on(std::size_t steps) {
    machine.run(steps);
    for (const Record& record : machine.take_records()) {
      all_.push_back(record);
      if (!to_the_next(record)) records.push_back(record);
    }
  }
  void encode_new() { encoder.encode(std::exchange(all_, {}), packets); }
  [[nodiscard]] std::vector<std::uint8_t> finished() const {
    std::vector<std::uint8_t> whole = packets;
    encoder.finish(machine.pc(), whole);
    return whole;
  }

 private:
  /// A conditional jump to the next instruction looks equal whether taken or not.
  bool to_the_next(const Record& record) {
    if (record.kind != decoder::RecordKind::kBranch) return false;
    const arch::InsnFacts& insn = insns.at(record.from);
    return insn.kind == arch::InsnKind::kConditionalJump && record.to == record.from + insn.length;
  }

  std::vector<Record> all_;  ///< Not encoded yet.
};

class PtRecords : public testing::TestWithParam<arch::Isa> {};

TEST_P(PtRecords, ComeBackAsTheyWere) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    RandomRun run{seed, GetParam()};
    run.go_on(400);
    run.encode_new();
    std::vector<Record> decoded;
    PtDecoder{run.insns}.decode(run.finished(), decoded);
    ASSERT_TRUE(same(run.records, decoded)) << "seed " << seed;
  }
}

TEST_P(PtRecords, OfAFrontAreTheFrontOfTheRecords) {
  for (unsigned seed = 0; seed < kPrograms / 4; ++seed) {
    RandomRun run{seed, GetParam()};
    for (int part = 0; part < 4; ++part) {
      run.go_on(pick(run.random, 80));
      run.encode_new();
      run.encoder.synchronize(run.packets);
    }
    PtDecoder decoder{run.insns};
    for (std::size_t size = 0; size <= run.packets.size(); ++size) {
      std::vector<Record> front;
      decoder.decode(std::span{run.packets}.first(size), front);
      ASSERT_LE(front.size(), run.records.size()) << "seed " << seed << " size " << size;
      ASSERT_TRUE(same(std::span{run.records}.first(front.size()), front))
          << "seed " << seed << " size " << size << " of " << run.packets.size();
    }
  }
}

TEST_P(PtRecords, ComeOutOnceEachFromAStreamInPieces) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    RandomRun run{seed, GetParam()};
    Sink sink;
    PtRecordStream stream{PtDecoder{run.insns}, sink};
    std::size_t given = 0;
    for (int part = 0; part < 8; ++part) {
      run.go_on(pick(run.random, 150));
      run.encode_new();
      if (pick(run.random, 2) == 0) run.encoder.synchronize(run.packets);
      const std::size_t end = given + pick(run.random, run.packets.size() - given + 1);
      stream.append(std::span{run.packets}.subspan(given, end - given));
      given = end;
      stream.flush();
      ASSERT_LE(sink.all.size(), run.records.size());
      ASSERT_TRUE(same(std::span{run.records}.first(sink.all.size()), sink.all))
          << "seed " << seed << " part " << part;
    }
    const std::vector<std::uint8_t> whole = run.finished();
    stream.append(std::span{whole}.subspan(given));
    stream.flush();
    ASSERT_TRUE(same(run.records, sink.all)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PtRecords, testing::Values(arch::Isa::kAmd64, arch::Isa::kI386),
                         [](const auto& tested) {
                           return tested.param == arch::Isa::kAmd64 ? "Amd64" : "I386";
                         });

TEST(PtDecoder, TheLastBranchIsToldWhereverTheTraceStops) {
  for (unsigned steps = 1; steps < 120; ++steps) {
    RandomRun run{steps % 5, arch::Isa::kAmd64, {}};
    run.go_on(steps);
    run.encode_new();
    const TraceeAddr at = run.records.back().to;
    run.encoder.finish(at, run.packets);
    std::vector<Record> decoded;
    PtDecoder{run.insns}.decode(run.packets, decoded);
    ASSERT_TRUE(same(run.records, decoded)) << steps << " steps";
  }
}

TEST(PtRecordStream, AHoleIsALossOfUnknownSize) {
  RandomRun run{7};
  Sink sink;
  PtRecordStream stream{PtDecoder{run.insns}, sink};
  run.go_on(300);
  run.encode_new();
  stream.append(run.packets);
  stream.hole();
  const std::size_t before = sink.all.size();
  ASSERT_GT(before, 0U);
  run.go_on(300);
  run.packets.clear();
  run.encode_new();
  stream.append(run.packets);  // Without a PSB, in the middle of running code, these packets cannot
                               // be decoded.
  run.packets.clear();
  run.encoder.synchronize(run.packets);
  const std::size_t seen = run.records.size();
  const TraceeAddr begin = run.machine.pc();
  run.go_on(300);
  run.encode_new();
  stream.append(run.finished());
  stream.flush();
  ASSERT_GT(sink.all.size(), before);
  const Record& loss = sink.all[before];
  EXPECT_EQ(loss.reason, GapReason::kOverflow);
  EXPECT_EQ(loss.payload, 0U);
  EXPECT_LE(loss.to, begin);
  EXPECT_TRUE(std::equal(sink.all.end() - static_cast<std::ptrdiff_t>(run.records.size() - seen),
                         sink.all.end(), run.records.begin() + static_cast<std::ptrdiff_t>(seen)));
}

TEST(PtRecordStream, StretchesBetweenStopsJoin) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    RandomRun run{seed};
    Sink sink;
    PtRecordStream stream{PtDecoder{run.insns}, sink};
    for (int part = 0; part < 6; ++part) {
      // As in hardware, tracing is enabled where the thread continues and disabled where it stops.
      if (part != 0) {
        run.encoder.restart();
        run.packets.clear();
        run.encoder.encode(std::array{decoder::gap(GapReason::kStart, {}, run.machine.pc())},
                           run.packets);
      }
      run.go_on(pick(run.random, 200));
      run.encode_new();
      stream.append(run.finished());
      stream.flush();
      ASSERT_TRUE(same(run.records, sink.all)) << "seed " << seed << " part " << part;
    }
  }
}

TEST(PtRecordStream, WhatNobodyListenedToIsNotHandedOnLater) {
  RandomRun run{11};
  Sink sink;
  PtRecordStream stream{PtDecoder{run.insns}, sink};
  run.go_on(200);
  run.encode_new();
  run.encoder.synchronize(run.packets);
  stream.append(run.packets);
  stream.skip();
  const std::size_t skipped = run.records.size();
  const std::size_t given = run.packets.size();
  run.go_on(200);
  run.encode_new();
  const std::vector<std::uint8_t> whole = run.finished();
  stream.append(std::span{whole}.subspan(given));
  stream.flush();
  // Branches that the earlier packets left undecided come with the packets that decide them.
  const std::size_t listened = run.records.size() - skipped;
  ASSERT_GE(sink.all.size(), listened);
  EXPECT_LT(sink.all.size(), listened + 8);
  EXPECT_TRUE(same(std::span{run.records}.last(listened), std::span{sink.all}.last(listened)));
}

TEST(PtRecordStream, AnotherPcIsToldOnce) {
  RandomRun run{3};
  Sink sink;
  PtRecordStream stream{PtDecoder{run.insns}, sink};
  run.go_on(200);
  run.encode_new();
  stream.append(run.finished());
  const TraceeAddr from = run.machine.pc();
  const TraceeAddr to = run.program.functions().front();
  const Record moved = decoder::gap(GapReason::kPcChanged, from, to);
  stream.insert(moved);
  // Tracing stopped before `from` and resumes at `to`.
  std::vector<std::uint8_t> more;
  PtEncoder second{run.insns};
  second.encode(std::array{decoder::gap(GapReason::kStart, {}, to)}, more);
  stream.append(std::span{more}.subspan(18));  // Without its PSB and PSBEND.
  stream.flush();
  EXPECT_EQ(std::count(sink.all.begin(), sink.all.end(), moved), 1);
  EXPECT_EQ(sink.all.back(), moved);
}

TEST(PtDecoder, FollowsFilesAndMemoryAlike) {
  RandomRun run{5};
  run.go_on(500);
  run.encode_new();
  std::vector<Record> by_memory;
  PtDecoder decoder{run.insns};
  decoder.decode(run.finished(), by_memory);
  // A file of the functions' own page, and one that does not exist.
  const TraceeAddr base{run.program.functions().front().value() & ~std::uint64_t{0xfff}};
  std::vector<std::uint8_t> page(4096, 0x90);
  for (std::size_t at = 0; at < page.size(); ++at) {
    (void)run.program.read_code(base + at, std::span{page}.subspan(at, 1));
  }
  const std::string path = testing::TempDir() + "pt_decoder_test.code";
  std::ofstream{path, std::ios::binary}.write(
      reinterpret_cast<const char*>(page.data()),  // NOLINT(*-reinterpret-cast)
      static_cast<std::streamsize>(page.size()));
  decoder.set_files({{path, 0, page.size(), base}, {path + ".absent", 0, 4096, base + 0x10000}});
  std::vector<Record> by_file;
  decoder.decode(run.finished(), by_file);
  std::remove(path.c_str());
  EXPECT_TRUE(same(by_memory, by_file));
}

TEST(PtDecoder, NoPacketsOrNoSenseGiveNoRecords) {
  RandomRun run{1};
  std::vector<Record> out;
  PtDecoder decoder{run.insns};
  decoder.decode({}, out);
  std::vector<std::uint8_t> noise(4096);
  for (auto& byte : noise) byte = static_cast<std::uint8_t>(run.random());
  decoder.decode(noise, out);
  EXPECT_TRUE(out.empty());
}

TEST(PtDecoder, PacketsThatAreWrongLeaveAGap) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    RandomRun run{seed};
    for (int part = 0; part < 4; ++part) {
      run.go_on(200);
      run.encode_new();
      run.encoder.synchronize(run.packets);
    }
    std::vector<std::uint8_t> packets = run.finished();
    packets[40 + pick(run.random, packets.size() - 40)] ^= 0xffU;
    std::vector<Record> decoded;
    PtDecoder{run.insns}.decode(packets, decoded);
    ASSERT_FALSE(decoded.empty());
    ASSERT_EQ(decoded.front().reason, GapReason::kStart);
    // Even wrong records join: each begins at or after the end of the previous one.
    for (const Record& record : decoded) ASSERT_NE(record.to, TraceeAddr{}) << "seed " << seed;
  }
}

TEST(PtErrata, AreKnownOfTheCpusThatHavePt) {
  EXPECT_TRUE(decoder::pt_errata_known({6, 0x5e, 3}));
  EXPECT_FALSE(decoder::pt_errata_known({15, 6, 1}));
}

}  // namespace
}  // namespace backtrail::test
