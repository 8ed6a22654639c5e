// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Recorders on a simulated kernel, and the table of its misbehaviours.

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/pt/pt_raw_history.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "ptrace/perf/bts_recorder.hpp"
#include "ptrace/perf/lbr_recorder.hpp"
#include "ptrace/perf/pt_recorder.hpp"
#include "ptrace/perf/sched_marks.hpp"
#include "test/support/simulated_perf.hpp"

namespace backtrail::tracee::simulated {

using decoder::GapReason;
using decoder::LossBound;
using decoder::MarkKind;
using decoder::Record;
using decoder::RecordKind;
using decoder::TraceMark;
using decoder::perf::RecordType;
using test::Pairs;
using test::SimulatedPerf;

inline constexpr std::uint64_t kKernel = 0xffff'ffff'8100'0000;
inline constexpr pid_t kTid = 4711;

/// Memory full of one-byte instructions that fall through, so that ascending addresses join.
class NopCode : public decoder::CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr, std::span<std::uint8_t> out) override {
    std::fill(out.begin(), out.end(), std::uint8_t{0x90});
    return out.size();
  }
};

class Sink : public decoder::TraceConsumer {
 public:
  void consume(std::span<const Record> batch) override {
    records.insert(records.end(), batch.begin(), batch.end());
    for (const Record& record : batch)
      order.push_back(record.kind == RecordKind::kBranch ? 'b' : 'g');
  }
  void consume_mark(const TraceMark& mark) override {
    marks.push_back(mark);
    order.push_back(mark.kind == MarkKind::kArrives ? '+' : '-');
  }
  [[nodiscard]] std::vector<std::uint64_t> branches() const {
    std::vector<std::uint64_t> out;
    for (const Record& record : records)
      if (record.kind == RecordKind::kBranch) out.push_back(record.from.value());
    return out;
  }
  /// Returns the gaps after the start, as text: "12", ">=3", "2 batches", "?", "async",
  /// "unrecorded".
  [[nodiscard]] std::vector<std::string> gaps() const {
    std::vector<std::string> out;
    for (const Record& record : records) {
      if (record.kind != RecordKind::kGap || record.reason == GapReason::kStart) continue;
      std::string text = record.reason == GapReason::kUnseenAsync   ? "async"
                         : record.reason == GapReason::kNotRecorded ? "unrecorded"
                         : record.payload == 0                      ? "?"
                                               : std::to_string(record.payload);
      if (record.bound == LossBound::kAtLeast) text.insert(0, ">=");
      if (record.bound == LossBound::kBatches) text += " batches";
      out.push_back(text);
    }
    return out;
  }
  std::vector<Record> records;
  std::vector<TraceMark> marks;
  std::string order;
};

/// Returns `count` branches from `first` on, each to the next one's address.
inline Pairs run_of(std::uint64_t first, std::uint64_t count) {
  Pairs out;
  for (std::uint64_t i = 0; i < count; ++i) out.emplace_back(first + i, first + i + 1);
  return out;
}
inline std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}
inline std::vector<std::uint64_t> joined(std::vector<std::uint64_t> a,
                                         const std::vector<std::uint64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
using Texts = std::vector<std::string>;

struct Bts {
  SimulatedPerf kernel;
  NopCode code;
  decoder::InsnCache insns{code};
  Sink sink;
  std::unique_ptr<BtsRecorder> recorder;
  Error error;

  bool open(BufferMode mode = BufferMode::kStream, std::uint64_t bytes = 4096, bool marks = false,
            bool cpu = true) {
    auto opened = BtsRecorder::open(kernel, kTid, cpu, {mode, bytes, marks}, insns, sink);
    if (!opened) return error = opened.error(), false;
    recorder = std::move(*opened);
    // Positions begin where the test wants them, for the reader too: earlier contents count as
    // read.
    EXPECT_TRUE(recorder->start(TraceeAddr{1}));
    recorder->resumed();
    return true;
  }
  bool open_aux(BufferMode mode = BufferMode::kStream, std::uint64_t bytes = 4096) {
    kernel.devices["intel_bts/type"] = "8";
    return open(mode, bytes) && recorder->uses_aux();
  }
  test::SimulatedEvent& event() { return kernel.last(); }
  void drain(std::uint64_t pc) { recorder->drain(TraceeAddr{pc}); }
  void expect(const std::vector<std::uint64_t>& branches, const Texts& gaps) {
    EXPECT_EQ(sink.branches(), branches);
    EXPECT_EQ(sink.gaps(), gaps);
    for (const Record& record : sink.records) {
      EXPECT_LT(record.from.value(), kKernel);
      EXPECT_LT(record.to.value(), kKernel);
    }
  }
  /// Writes and reads records up to the ring's end, so that the next one wraps.
  void read_up_to_the_end(std::uint64_t from_the_end) {
    const std::uint64_t size = event().ring_bytes();
    std::uint64_t here = event().page().data_head % size;
    while (here + 24 + from_the_end <= size) {
      event().write(RecordType::kMmap, 0, {0, 0});
      here += 24;
      recorder->drain();
    }
    for (; here + from_the_end < size; here += 8) {
      event().write(RecordType::kMmap, 0, {});
      recorder->drain();
    }
  }
};

struct Pt {
  SimulatedPerf kernel;
  decoder::PtRawHistory history{1U << 20U};
  std::unique_ptr<PtRecorder> recorder;

  bool open(BufferMode mode = BufferMode::kStream, std::uint64_t bytes = 4096) {
    kernel.devices["intel_pt/type"] = "9";
    auto opened = PtRecorder::open(kernel, kTid, {mode, bytes, false}, history);
    if (!opened) return false;
    recorder = std::move(*opened);
    EXPECT_TRUE(recorder->start());
    recorder->resumed();
    return true;
  }
  test::SimulatedEvent& event() { return kernel.last(); }
};

inline std::vector<std::uint8_t> psb_and(std::size_t tnts) {
  std::vector<std::uint8_t> out;
  for (int i = 0; i < 8; ++i) out.insert(out.end(), {0x02, 0x82});
  out.insert(out.end(), {0x02, 0x23});
  out.insert(out.end(), tnts, 0x06);
  return out;
}

inline std::uint64_t ovfs(const std::vector<std::uint8_t>& bytes) {
  return decoder::count_packets(bytes).of(decoder::PtKind::kOvf);
}

struct Lbr {
  SimulatedPerf kernel;
  NopCode code;
  decoder::InsnCache insns{code};
  Sink sink;
  std::unique_ptr<LbrRecorder> recorder;

  Lbr() {
    auto opened = LbrRecorder::open(kernel, kTid, 4096, insns, sink);
    recorder = std::move(*opened);
    EXPECT_TRUE(recorder->start(TraceeAddr{1}));
  }
  /// Adds a sample with these entries, newest first.
  void sample(const std::vector<std::array<std::uint64_t, 3>>& entries) {
    std::vector<std::uint64_t> words{0x99, entries.size()};
    for (const auto& entry : entries) words.insert(words.end(), entry.begin(), entry.end());
    kernel.last().write(RecordType::kSample, 0, words);
  }
};

/// A row of the table: the number of the misbehaviour, its description, and the check.
struct Case {
  int number;
  const char* what;
  std::function<void()> check;
};

// The table; each file has a part.
[[nodiscard]] std::vector<Case> ring_cases();
[[nodiscard]] std::vector<Case> open_cases();
[[nodiscard]] std::vector<Case> aux_cases();
[[nodiscard]] std::vector<Case> other_cases();
[[nodiscard]] std::vector<Case> call_cases();

}  // namespace backtrail::tracee::simulated
