// SPDX-License-Identifier: Apache-2.0
// Two pieces decoded in lanes must give the records of the pieces decoded one after the other.

#include "decoder/pt/flow_lanes.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "test/support/effort.hpp"
#include "test/unit/decoder/flat_code.hpp"
#include "test/unit/decoder/toy_program.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using decoder::Record;

using Bytes = std::vector<std::uint8_t>;

/// How the function is called and how its end is reached.
enum class Through : std::uint8_t {
  kDirect,   ///< call 1000; jmp 1011
  kPointer,  ///< call *rax and three nops; jmp *rax
};

/// A function of random branches that may call itself, and a caller that calls it forever:
///
///     1000: jz 1005;  1002: mov;  1005: jnz 100c;  1007: call 1000;  100c: jnz 1000
///     100e: jmp 1011; 1010: nop;  1011: ret;  1012: call 1000;  1017: jmp 1012
FlatCode chances(Through through) {
  FlatCode code{0x1000_ta,
                {0x74, 0x03, 0x48, 0x89, 0xc8, 0x75, 0x05, 0xe8, 0xf4, 0xff, 0xff, 0xff, 0x75,
                 0xf2, 0xeb, 0x01, 0x90, 0xc3, 0xe8, 0xe9, 0xff, 0xff, 0xff, 0xeb, 0xf9}};
  if (through == Through::kDirect) return code;
  for (const std::size_t call : {0x7U, 0x12U}) {
    constexpr std::array<std::uint8_t, 5> kByPointer{0xff, 0xd0, 0x90, 0x90, 0x90};
    std::copy(kByPointer.begin(), kByPointer.end(), &code.bytes()[call]);
  }
  code.bytes()[0xe] = 0xff;
  code.bytes()[0xf] = 0xe0;
  return code;
}

class ChanceRun {
 public:
  /// @param calls  Number of calls in ten visits to the call instruction.
  ChanceRun(unsigned seed, unsigned calls, std::size_t length, Through through = Through::kDirect)
      : random_{seed}, code_{chances(through)}, call_bytes_{through == Through::kDirect ? 5U : 2U} {
    records_.push_back(decoder::gap(decoder::GapReason::kStart, {}, 0x1012_ta));
    while (records_.size() < length) step(calls);
    records_.resize(length);
    decoder::PtEncoder encoder{insns_};
    for (std::size_t at = 0; at < records_.size();) {
      const std::size_t count = std::min<std::size_t>(1 + pick(random_, 1500), length - at);
      encoder.encode(std::span{records_}.subspan(at, count), packets_);
      at += count;
      if (at < records_.size()) encoder.synchronize(packets_);
    }
    encoder.finish(records_.back().to, packets_);
  }
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }
  [[nodiscard]] std::vector<Record> decode(const Bytes& packets, bool in_lanes, unsigned threads) {
    decoder::PtDecoder decoder{insns_};
    decoder.use_threads({.count = threads, .piece_bytes = 1, .in_lanes = in_lanes});
    std::vector<Record> out;
    decoder.decode(packets, out);
    helped_ = decoder.times_helped();
    return out;
  }
  [[nodiscard]] const Bytes& packets() const { return packets_; }
  [[nodiscard]] std::uint64_t helped() const { return helped_; }
  Random& random() { return random_; }

 private:
  void step(unsigned calls) {
    if (stack_.empty()) {
      go(0x1012_ta, 0x1000_ta);
      stack_.push_back(0x1012_ta + call_bytes_);
    }
    if (pick(random_, 2) != 0) go(0x1000_ta, 0x1005_ta);
    if (pick(random_, 10) < calls) {
      go(0x1007_ta, 0x1000_ta);
      stack_.push_back(0x1007_ta + call_bytes_);
      return;
    }
    go(0x1005_ta, 0x100c_ta);
    for (;;) {
      // Execution is at 100c.
      if (pick(random_, 3) == 0) return go(0x100c_ta, 0x1000_ta);
      go(0x100e_ta, 0x1011_ta);
      const TraceeAddr behind = stack_.back();
      stack_.pop_back();
      go(0x1011_ta, behind);
      if (stack_.empty()) return go(0x1017_ta, 0x1012_ta);
    }
  }
  void go(TraceeAddr from, TraceeAddr to) { records_.push_back(decoder::branch(from, to)); }

  Random random_;
  FlatCode code_;
  unsigned call_bytes_;
  decoder::InsnCache insns_{code_};
  std::vector<TraceeAddr> stack_;
  std::vector<Record> records_;
  Bytes packets_;
  std::uint64_t helped_ = 0;
};

TEST(FlowLanes, FollowChancesAsTheyFell) {
  // From hardly any calls to more than are ever returned from.
  for (unsigned calls = 0; calls < 8; ++calls) {
    ChanceRun run{calls, calls, 60'000};
    for (const unsigned threads : {1U, 2U}) {
      EXPECT_EQ(run.decode(run.packets(), true, threads), run.records()) << calls;
      EXPECT_EQ(run.helped(), 0U);
    }
  }
}

TEST(FlowLanes, GoOnOverTips) {
  // From a TIP in sixty records to one in two.
  for (unsigned calls = 0; calls < 8; ++calls) {
    ChanceRun run{calls, calls, 60'000, Through::kPointer};
    for (const unsigned threads : {1U, 2U, 3U}) {
      EXPECT_EQ(run.decode(run.packets(), true, threads), run.records()) << calls;
      EXPECT_EQ(run.helped(), 0U);
    }
  }
}

TEST(FlowLanes, TellTheSameOfDamagedPackets) {
  for (unsigned seed = 0; seed < cases(120); ++seed) {
    const Through through = seed % 2 == 0 ? Through::kDirect : Through::kPointer;
    ChanceRun run{seed, seed % 7, 4'000, through};
    Bytes packets = run.packets();
    for (unsigned i = 0; i <= seed % 3; ++i) {
      packets[pick(run.random(), packets.size())] ^=
          static_cast<std::uint8_t>(1U << pick(run.random(), 8));
    }
    const std::vector<Record> expected = run.decode(packets, false, 1);
    const std::uint64_t helped = run.helped();
    EXPECT_EQ(run.decode(packets, true, 1), expected) << seed;
    EXPECT_EQ(run.helped(), helped);
  }
}

TEST(FlowLanes, BeginWithPacketsOfSixBits) {
  EXPECT_TRUE(decoder::is_full_tnt8(0x80));
  EXPECT_TRUE(decoder::is_full_tnt8(0xfe));
  EXPECT_FALSE(decoder::is_full_tnt8(0x7e));
  EXPECT_FALSE(decoder::is_full_tnt8(0x81));
  EXPECT_EQ(decoder::tnt8_bits(0xfe), 6U);
  EXPECT_EQ(decoder::tnt8_bits(0x04), 1U);
}

}  // namespace
}  // namespace backtrail::test
