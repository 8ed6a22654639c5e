// Our own decoder of Intel PT says what libipt says, of whatever bytes.

#include <algorithm>
#include <bit>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/packets_from.hpp"
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using decoder::InsnCache;
using decoder::PacketWriter;
using decoder::PtDecoder;
using decoder::PtKind;
using decoder::Record;

using Bytes = std::vector<std::uint8_t>;

constexpr unsigned kPrograms = 60;

std::string text(std::span<const Record> records, std::size_t from, std::size_t count) {
  std::string out;
  for (std::size_t i = from; i < std::min(from + count, records.size()); ++i) {
    const Record& record = records[i];
    out += fmt::format(" {:#x}->{:#x}/{}/{}", record.from.value(), record.to.value(),
                       static_cast<int>(record.kind), static_cast<int>(record.reason));
  }
  return out;
}

struct Decoded {
  std::vector<Record> records;
  bool finished = false;
  std::uint64_t helped = 0;
};

/// @param threads They divide the stretch at every PSB where that can be.
Decoded decode(decoder::CodeReader& code, std::span<const std::uint8_t> packets, bool libipt_alone,
               std::optional<decoder::CpuIdentity> cpu, unsigned threads = 1,
               bool in_lanes = false) {
  InsnCache insns{code};
  PtDecoder decoder{insns, cpu};
  decoder.use_threads({.count = threads, .piece_bytes = 1, .in_lanes = in_lanes});
  if (libipt_alone) decoder.use_libipt_alone();
  Decoded out;
  out.finished = decoder.decode(packets, out.records);
  out.helped = decoder.times_helped();
  return out;
}

/// Both say the same. At the end of a trace that was not switched off libipt leaves out what the
/// last TNT packet says, and decoding that began at another PSB may leave out more.
testing::AssertionResult same(const Decoded& ours, const Decoded& libipt,
                              std::span<const std::uint8_t> packets) {
  const auto [a, b] = std::mismatch(ours.records.begin(), ours.records.end(),
                                    libipt.records.begin(), libipt.records.end());
  const auto at = static_cast<std::size_t>(a - ours.records.begin());
  const bool same = a == ours.records.end() && b == libipt.records.end() && ours.finished;
  const bool front = a == ours.records.end() || b == libipt.records.end();
  if (libipt.finished ? !same : !front) {
    const std::size_t before = at < 3 ? 0 : at - 3;
    return testing::AssertionFailure()
           << "record " << at << " of " << ours.records.size() << " and " << libipt.records.size()
           << "; ours" << text(ours.records, before, 6) << "; libipt's"
           << text(libipt.records, before, 6) << "; finished " << ours.finished << ' '
           << libipt.finished << " helped " << ours.helped << " " << packet_names(packets);
  }
  return testing::AssertionSuccess();
}

/// libipt, ours by one thread, and by two with two pieces at once.
testing::AssertionResult agree(decoder::CodeReader& code, std::span<const std::uint8_t> packets,
                               std::uint64_t* helped = nullptr,
                               std::optional<decoder::CpuIdentity> cpu = std::nullopt) {
  const Decoded libipt = decode(code, packets, true, cpu);
  for (const unsigned threads : {1U, 2U}) {
    const Decoded ours = decode(code, packets, false, cpu, threads, threads == 2);
    if (helped != nullptr) *helped += ours.helped;
    if (auto result = same(ours, libipt, packets); !result) return result << " threads " << threads;
  }
  return testing::AssertionSuccess();
}

/// A random program's run as packets, with a PSB now and then.
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

/// What `part` makes of a run's packets and each of many places in them.
template <typename Part>
void agree_wherever(const Case& tested, std::uint32_t widest_step, Part part) {
  for (unsigned seed = 0; seed < kPrograms / 10; ++seed) {
    ToyRun run{seed, tested.isa, tested.habits};
    const std::span<const std::uint8_t> packets{run.packets};
    for (std::size_t at = 0; at < packets.size();
         at += 1 + packets.size() / 300 + pick(run.random, widest_step)) {
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

/// The stream's packets, one by one, through `change`, which writes what it wants instead.
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

void add(Bytes& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

/// As CPUs write: times between the packets, and bits of several TNT packets in a long one.
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

/// TNT bits of branches behind an indirect one, written before its TIP.
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
          switch (pick(run.random, 4)) {
            case 0:
              writer.tip_pge(place());
              break;
            case 1:
              writer.mode_exec(GetParam().isa);
              writer.tip_pge(place());
              break;
            case 2:
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

/// Bytes changed, left out, put in, swapped.
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

/// A long run with many PSBs: what several threads make of it is what one does, to the record.
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

TEST(FlowDecoderCases, SystemCallsStopTracing) {
  // 1000: jz 1003; 1002: nop; 1003: syscall; 1005: jmp 1008; 1007: nop; 1008: ret
  FlatCode code{0x1000_ta, {0x74, 0x01, 0x90, 0x0f, 0x05, 0xeb, 0x01, 0x90, 0xc3}};
  for (const TraceeAddr back : {0x1005_ta, 0x1008_ta}) {
    const Bytes packets = from_0x1000([&](PacketWriter& writer) {
      writer.taken();
      writer.tip_pgd();
      writer.tip_pge(back);
      writer.fup(0x1008_ta);
      writer.tip_pgd();
    });
    const Record last = back == 0x1005_ta
                            ? decoder::branch(0x1005_ta, 0x1008_ta)
                            : decoder::gap(decoder::GapReason::kUnseenAsync, 0x1005_ta, back);
    for (const bool alone : {false, true}) {
      const Decoded decoded = decode(code, packets, alone, std::nullopt);
      ASSERT_EQ(decoded.records.size(), 3U) << alone;
      EXPECT_EQ(decoded.records[1], decoder::branch(0x1000_ta, 0x1003_ta));
      EXPECT_EQ(decoded.records[2], last);
      EXPECT_EQ(decoded.helped, alone ? 1U : 0U);
    }
  }
}

TEST(FlowDecoderCases, ALoopWithoutPacketsEnds) {
  FlatCode code{0x1000_ta, {0xeb, 0xfe}};
  EXPECT_TRUE(agree(code, from_0x1000([](PacketWriter&) {})));
  for (const TraceeAddr at : {0x1000_ta, 0x1001_ta}) {
    EXPECT_TRUE(agree(code, from_0x1000([&](PacketWriter& writer) {
                        writer.fup(at);
                        writer.tip_pgd();
                      })));
  }
  EXPECT_TRUE(agree(code, from_0x1000([](PacketWriter& writer) { writer.taken(); })));
}

TEST(FlowDecoderCases, SixtyFourReturnsAreCompressed) {
  // 1000: call 1005; 1005 would be a call of the next instruction: call 1006; nop; jz 1000; ret
  FlatCode code{0x1000_ta, {0xe8, 0x01, 0, 0, 0, 0x90, 0x74, 0xf8, 0xc3}};
  for (const unsigned depth : {3U, 63U, 64U, 65U, 66U, 200U}) {
    const Bytes packets = from_0x1000([&](PacketWriter& writer) {
      for (unsigned i = 1; i < depth; ++i) writer.taken();
      writer.not_taken(1);
      // Each return comes back to 1005, which runs into the jump and the next return.
      for (unsigned i = 0; i < depth; ++i) {
        writer.taken();
        writer.not_taken(1);
      }
    });
    EXPECT_TRUE(agree(code, packets)) << depth;
  }
}

TEST(FlowDecoderCases, AnAddressInAPsbJustBeforeTracingBeginsMayBeWrong) {
  const decoder::CpuIdentity skylake{6, 0x5e, 3};
  FlatCode code{0x1000_ta, {0x90, 0x90, 0xc3}};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.tip_pge(0x1001_ta);
    writer.fup(0x1002_ta);
    writer.tip_pgd();
  });
  std::uint64_t helped = 0;
  EXPECT_TRUE(agree(code, packets, &helped, skylake));
  EXPECT_EQ(helped, 0U);
  EXPECT_EQ(decode(code, packets, false, skylake).records.at(0).to, 0x1001_ta);
  EXPECT_TRUE(agree(code, packets));
}

TEST(FlowDecoderCases, PacketsOfOtherFeaturesAreLibiptsToRead) {
  FlatCode code{0x1000_ta, {0x90, 0x74, 0xfd, 0xc3}};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.taken();
    writer.flush();
  });
  const std::vector<Bytes> others{
      {0x02, 0x12, 1, 2, 3, 4},                   // PTWRITE
      {0x02, 0x22, 0, 0},                         // PWRE
      {0x02, 0x62},                               // EXSTOP
      {0x02, 0x83},                               // TraceStop
      {0x99, 0x20},                               // MODE.TSX
      {0x02, 0xc3, 0x88, 1, 2, 3, 4, 5, 6, 7, 8}  // MNT
  };
  for (const Bytes& other : others) {
    Bytes whole = packets;
    add(whole, other);
    add(whole, Bytes{0x04, 0x06});
    std::uint64_t helped = 0;
    EXPECT_TRUE(agree(code, whole, &helped));
    EXPECT_NE(helped, 0U);
  }
}

/// Code that can be changed.
class ChangingCode : public decoder::CodeReader {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    FlatCode flat{0x1000_ta, bytes};
    return flat.read_code(address, out);
  }
  std::vector<std::uint8_t> bytes;
};

TEST(FlowDecoderCases, ChangedCodeIsReadAgain) {
  ChangingCode code;
  code.bytes = {0x90, 0x74, 0x01, 0x90, 0xc3};  // 1001: jz 1004
  InsnCache insns{code};
  PtDecoder decoder{insns};
  const Bytes packets = from_0x1000([](PacketWriter& writer) {
    writer.taken();
    writer.tip(0x1000_ta);
  });
  std::vector<Record> before;
  decoder.decode(packets, before);
  ASSERT_EQ(before.size(), 2U);
  EXPECT_EQ(before[1], decoder::branch(0x1001_ta, 0x1004_ta));
  code.bytes = {0x75, 0x01, 0x90, 0xc3};  // 1000: jnz 1003
  std::vector<Record> after;
  decoder.decode(packets, after);
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after[1], decoder::branch(0x1000_ta, 0x1003_ta));
  EXPECT_EQ(decoder.times_helped(), 0U);
}

}  // namespace
}  // namespace backtrail::test
