// SPDX-License-Identifier: Apache-2.0
// Checks that PtDecoder agrees with libipt on arbitrary bytes.

#include <bit>
#include <functional>

#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "test/support/effort.hpp"
#include "test/unit/decoder/decoded.hpp"
#include "test/unit/decoder/packets_from.hpp"
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using decoder::InsnCache;
using decoder::PacketWriter;
using decoder::PtKind;

using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kPrograms = cases(60);
constexpr std::size_t kPlaces = cases(300);  ///< In one run, at most.

/// The run of a random program as packets, with occasional PSBs.
struct ToyRun {
  Random random;
  ToyProgram program;
  ToyMachine machine;
  InsnCache insns{program};
  decoder::PtEncoder encoder{insns};
  Bytes packets;

  ToyRun(unsigned seed, arch::Isa isa, ToyHabits habits, bool to_the_end = true)
      : random{seed}, program{isa, random}, machine{program, random, habits} {
    for (int part = 0; part < 5; ++part) {
      machine.run(pick(random, 200));
      encoder.encode(machine.take_records(), packets);
      if (pick(random, 3) != 0) encoder.synchronize(packets);
    }
    if (to_the_end) encoder.finish(machine.pc(), packets);
  }
};

struct Case {
  const char* name;
  ToyHabits habits;
  arch::Isa isa = arch::Isa::kAmd64;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class FlowDecoder : public testing::TestWithParam<Case> {};

TEST_P(FlowDecoder, AgreesWithLibiptWithoutItsHelp) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, GetParam().habits};
    std::uint64_t helped = 0;
    ASSERT_TRUE(agree(run.program, run.packets, &helped)) << "seed " << seed;
    ASSERT_EQ(helped, 0U) << "seed " << seed;
  }
}

/// Checks agreement on what `part` makes of a run's packets at many places.
template <typename Part>
void agree_wherever(const Case& tested, std::uint32_t widest_step, Part part) {
  for (unsigned seed = 0; seed < kPrograms / 10; ++seed) {
    ToyRun run{seed, tested.isa, tested.habits};
    const std::span<const std::uint8_t> packets{run.packets};
    for (std::size_t at = 0; at < packets.size();
         at += 1 + packets.size() / kPlaces + pick(run.random, widest_step)) {
      ASSERT_TRUE(agree(run.program, part(packets, at))) << "seed " << seed << " at " << at;
    }
  }
}

TEST_P(FlowDecoder, AgreesWhereverTheTraceEnds) {
  agree_wherever(GetParam(), 4, [](auto packets, std::size_t at) { return packets.first(at); });
}

TEST_P(FlowDecoder, AgreesWhereverTheTraceBegins) {
  agree_wherever(GetParam(), 9, [](auto packets, std::size_t at) { return packets.subspan(at); });
}

/// Passes the stream's packets one by one to `change`, which writes a replacement.
Bytes rewritten(const Bytes& packets,
                const std::function<void(const decoder::PtPacket&, std::span<const std::uint8_t>,
                                         Bytes&)>& change) {
  Bytes out;
  for (std::size_t at = 0; at < packets.size();) {
    const auto rest = std::span{packets}.subspan(at);
    const decoder::PtPacket packet = decoder::scan_packet(rest);
    if (packet.size == 0) break;
    change(packet, rest.first(packet.size), out);
    at += packet.size;
  }
  return out;
}

/// Rewrites packets as CPUs write them: with timing packets, and bits of several TNT packets in a
/// long one.
Bytes as_hardware_writes(const Bytes& packets, Random& random) {
  static const std::vector<Bytes> asides{
      {0x00},
      {0x00, 0x00, 0x00},
      {0x19, 1, 2, 3, 4, 5, 6, 7},  // TSC
      {0x59, 0x17},                 // MTC
      // TSC and TMA
      {0x19, 1, 2, 3, 4, 5, 6, 7, 0x02, 0x73, 0x10, 0x00, 0x00, 0x05, 0},
      {0x02, 0x03, 0x10, 0x00},  // CBR
      {0x0b},                    // CYC
      {0x0f, 0x03, 0x02},        // CYC, long
  };
  std::uint64_t bits = 0;
  unsigned count = 0;
  const auto write_bits = [&](Bytes& out) {
    if (count == 0) return;
    const std::uint64_t payload = std::uint64_t{1} << count | bits;
    if (count <= 6 && pick(random, 2) == 0) {
      out.push_back(static_cast<std::uint8_t>(payload << 1U));
    } else {
      add(out, Bytes{0x02, 0xa3});
      for (unsigned i = 0; i < 6; ++i) out.push_back(static_cast<std::uint8_t>(payload >> (8 * i)));
    }
    bits = 0;
    count = 0;
  };
  return rewritten(packets, [&](const decoder::PtPacket& packet,
                                std::span<const std::uint8_t> bytes, Bytes& out) {
    if (packet.kind == PtKind::kTnt8) {
      const auto more = static_cast<unsigned>(std::bit_width(bytes[0])) - 2;
      if (count + more > 47) write_bits(out);
      bits = bits << more | packet.payload;
      count += more;
      if (pick(random, 3) == 0) write_bits(out);
      return;
    }
    write_bits(out);
    if (pick(random, 3) == 0) add(out, asides[pick(random, asides.size())]);
    add(out, bytes);
  });
}

TEST_P(FlowDecoder, AgreesOnTimesAndLongPackets) {
  std::uint64_t helped = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, GetParam().habits};
    const Bytes packets = as_hardware_writes(run.packets, run.random);
    ASSERT_TRUE(agree(run.program, packets, &helped)) << "seed " << seed;
  }
  EXPECT_EQ(helped, 0U);
}

/// TNT bits of branches after an indirect one may be written before its TIP.
TEST_P(FlowDecoder, AgreesOnTipsThatComeLate) {
  std::size_t late = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, {}};
    Bytes tip;
    const Bytes packets = rewritten(
        run.packets,
        [&](const decoder::PtPacket& packet, std::span<const std::uint8_t> bytes, Bytes& out) {
          if (packet.kind == PtKind::kTip && tip.empty() && pick(run.random, 2) == 0) {
            tip.assign(bytes.begin(), bytes.end());
            return;
          }
          if (packet.kind == PtKind::kTnt8 && !tip.empty()) {
            ++late;
            add(out, bytes);
            add(out, tip);
          } else {
            add(out, tip);
            add(out, bytes);
          }
          tip.clear();
        });
    ASSERT_TRUE(agree(run.program, packets)) << "seed " << seed;
  }
  EXPECT_GT(late, 100U);
}

TEST_P(FlowDecoder, AgreesOnLosses) {
  std::uint64_t helped = 0;
  std::size_t losses = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, GetParam().habits};
    const auto place = [&] {
      const auto& functions = run.program.functions();
      const auto& blocks = run.program.blocks_near(functions[pick(run.random, functions.size())]);
      return blocks[pick(run.random, blocks.size())];
    };
    const Bytes packets = rewritten(
        run.packets,
        [&](const decoder::PtPacket& packet, std::span<const std::uint8_t> bytes, Bytes& out) {
          add(out, bytes);
          if (packet.kind != PtKind::kTnt8 || pick(run.random, 40) != 0) return;
          ++losses;
          decoder::PacketState state;
          PacketWriter writer{state, out};
          writer.ovf();
          switch (pick(run.random, 6)) {
            case 0:
              writer.tip_pge(place());
              break;
            case 1:
              writer.mode_exec(GetParam().isa);
              writer.tip_pge(place());
              break;
            case 2:
              break;
            case 3:  // Some Atoms do this.
              writer.tip_pgd();
              writer.tip_pge(place());
              break;
            case 4:
              writer.ovf();
              writer.fup(place());
              break;
            default:
              writer.fup(place());
              break;
          }
        });
    ASSERT_TRUE(agree(run.program, packets, &helped)) << "seed " << seed;
  }
  EXPECT_GT(losses, kPrograms / 2);
}

/// Changes, removes, inserts and swaps bytes.
Bytes damaged(Bytes packets, Random& random) {
  for (std::size_t n = 1 + pick(random, 3); n != 0; --n) {
    const auto at = packets.begin() + static_cast<std::ptrdiff_t>(pick(random, packets.size() - 8));
    switch (pick(random, 5)) {
      case 0:
        *at = static_cast<std::uint8_t>(random());
        break;
      case 1:
        *at ^= static_cast<std::uint8_t>(1U << pick(random, 8));
        break;
      case 2:
        packets.erase(at, at + 1 + static_cast<std::ptrdiff_t>(pick(random, 8)));
        break;
      case 3:
        packets.insert(at, static_cast<std::uint8_t>(random()));
        break;
      default:
        std::iter_swap(at, at + 1);
        break;
    }
  }
  return packets;
}

TEST_P(FlowDecoder, AgreesOnDamagedPackets) {
  std::uint64_t helped = 0;
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, GetParam().habits};
    const Bytes hardware = as_hardware_writes(run.packets, run.random);
    for (int round = 0; round < 10; ++round) {
      const Bytes packets = damaged(round % 2 == 0 ? run.packets : hardware, run.random);
      ASSERT_TRUE(agree(run.program, packets, &helped)) << "seed " << seed << " round " << round;
    }
  }
  EXPECT_NE(helped, 0U);
}

TEST_P(FlowDecoder, AgreesWhereCodeCannotBeRead) {
  for (unsigned seed = 0; seed < kPrograms; ++seed) {
    ToyRun run{seed, GetParam().isa, GetParam().habits};
    const TraceeAddr hidden = run.program.functions()[pick(run.random, 9)];
    run.program.hide(hidden, hidden + 0x1000);
    ASSERT_TRUE(agree(run.program, run.packets)) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FlowDecoder,
    testing::Values(Case{"Plain", {}}, Case{"Signals", {.signals = 40}},
                    Case{"SignalStorm", {.signals = 1}}, Case{"Gaps", {.signals = 60, .gaps = 50}},
                    Case{"WildReturns", {.wild_returns = 2}},
                    Case{"I386", {.signals = 60, .gaps = 50}, arch::Isa::kI386}),
    [](const auto& tested) { return std::string{tested.param.name}; });

/// Decodes a long run with many PSBs: the records of several threads must equal those of one.
TEST(FlowTeam, JoinsWhatItsThreadsFound) {
  for (unsigned seed = 0; seed < kPrograms / 6; ++seed) {
    Random random{seed};
    ToyProgram program{arch::Isa::kAmd64, random};
    ToyMachine machine{program, random, {.signals = seed % 2 == 0 ? 0U : 400U}};
    InsnCache insns{program};
    decoder::PtEncoder encoder{insns};
    Bytes packets;
    for (int part = 0; part < 200; ++part) {
      machine.run(pick(random, 300));
      encoder.encode(machine.take_records(), packets);
      encoder.synchronize(packets);
    }
    encoder.finish(machine.pc(), packets);
    if (seed % 3 == 2) packets = damaged(packets, random);
    const Decoded alone = decode(program, packets, false, std::nullopt);
    for (const unsigned threads : {1U, 2U, 5U}) {
      for (const bool in_lanes : {false, true}) {
        const Decoded team = decode(program, packets, false, std::nullopt, threads, in_lanes);
        EXPECT_EQ(team.records, alone.records) << "seed " << seed << " threads " << threads;
        EXPECT_EQ(team.finished, alone.finished);
        EXPECT_EQ(team.helped, alone.helped);
      }
    }
  }
}

}  // namespace
}  // namespace backtrail::test
