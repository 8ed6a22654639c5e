// Measures how fast raw branch trace of the kernel becomes neutral records.
//
// usage: drain_bench [MIB]

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "arch/base/bytes.hpp"
#include "decoder/perf/branch_assembler.hpp"
#include "decoder/perf/continuity_filter.hpp"
#include "decoder/perf/data_ring.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "ptrace/os/disk_queue.hpp"
#include "test/bench/synthetic_run.hpp"

namespace {

namespace decoder = backtrail::decoder;
namespace perf = backtrail::decoder::perf;
using backtrail::bench::SyntheticRun;

constexpr std::size_t kRounds = 7;

/// Adds the records up: the cheapest consumer that looks at each record.
class Sum : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    for (const decoder::Record& record : records) sum += record.to.value();
  }
  std::uint64_t sum = 0;
};

void report(const char* what, std::size_t bytes, const std::function<void()>& round) {
  std::array<double, kRounds> rates{};
  round();
  for (double& rate : rates) {
    const std::clock_t begin = std::clock();
    round();
    rate = static_cast<double>(bytes) / 1e6 /
           (static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::nth_element(rates.begin(), rates.begin() + kRounds / 2, rates.end());
  fmt::print("  {:<52} {:8.0f} MB/s\n", what, rates[kRounds / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  const long mib = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 48;
  if (mib <= 0 || mib > 4096) {
    fmt::print(stderr, "usage: drain_bench [MIB]\n");
    return 1;
  }
  const std::size_t count = static_cast<std::size_t>(mib) * (1U << 20U) / 24;
  SyntheticRun run{100, count};
  decoder::InsnCache insns{run};
  std::vector<std::uint8_t> raw;
  std::vector<std::uint8_t> samples;
  for (const decoder::Record& record : run.records()) {
    if (record.kind != decoder::RecordKind::kBranch) continue;
    std::array<std::uint8_t, 24> bytes{};
    backtrail::store_le(bytes.data(), record.from.value());
    backtrail::store_le(bytes.data() + 8, record.to.value());
    raw.insert(raw.end(), bytes.begin(), bytes.end());
    backtrail::store_le(bytes.data(), std::uint64_t{9} | std::uint64_t{24} << 48U);
    backtrail::store_le(bytes.data() + 8, record.from.value());
    backtrail::store_le(bytes.data() + 16, record.to.value());
    samples.insert(samples.end(), bytes.begin(), bytes.end());
  }
  Sum sum;
  report("AUX records -> neutral records", raw.size(), [&] {
    perf::BranchAssembler assembler{&insns, sum};
    assembler.raw_records(raw);
    assembler.flush();
  });
  report("AUX records -> neutral, joined against the code", raw.size(), [&] {
    perf::ContinuityFilter filter{insns, sum};
    perf::BranchAssembler assembler{&insns, filter};
    assembler.raw_records(raw);
    assembler.flush();
  });
  report("data ring samples -> neutral records", samples.size(), [&] {
    perf::BranchAssembler assembler{&insns, sum};
    const perf::SampleLayout layout{perf::kSampleIp | perf::kSampleAddr, false, 0};
    perf::walk_records(samples, [&](const perf::RecordView& view) {
      if (const auto pair = perf::plain_sample(view, layout))
        assembler.pair(pair->first, pair->second);
    });
    assembler.flush();
  });
  decoder::PtEncoder encoder{insns};
  std::vector<std::uint8_t> packets;
  encoder.encode(std::span{run.records()}.subspan(1), packets);
  std::uint64_t packet_count = 0;
  report("PT -> packets", packets.size(), [&] {
    const auto counts = decoder::count_packets(packets);
    for (const std::uint64_t kind : counts.packets) packet_count += kind;
  });
  auto queue = backtrail::tracee::DiskQueue::create("/var/tmp", std::uint64_t{8} << 30U);
  if (queue) {
    std::vector<std::uint8_t> piece(std::size_t{1} << 20U);
    report("a spool on disk, in and out", raw.size(), [&] {
      for (std::size_t at = 0; at + piece.size() <= raw.size(); at += piece.size()) {
        if (!queue->push(std::span{raw}.subspan(at, piece.size()))) fmt::print("WRONG: full\n");
      }
      while (queue->pop(piece).value_or(0) != 0) {
      }
    });
  }
  fmt::print("({} and {} to keep the work)\n", sum.sum % 10, packet_count % 10);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
