// Measures how fast branch records become Intel PT packets, and how many bytes they take.
//
// usage: pt_encode_bench [MILLION_RECORDS]

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

#include <fmt/core.h>

#include "decoder/bts/bts_history.hpp"
#include "decoder/pt/pt_encoder.hpp"
#include "decoder/pt/pt_history.hpp"
#include "test/bench/synthetic_run.hpp"

namespace {

using backtrail::bench::SyntheticRun;
namespace decoder = backtrail::decoder;
using Records = std::span<const decoder::Record>;

constexpr std::size_t kBatch = 4096;
constexpr std::size_t kRounds = 9;

/// Returns the median of several rounds, in million records a second of CPU time.
double median_rate(std::size_t records, const std::function<void()>& round) {
  std::array<double, kRounds> rates{};
  round();  // fills caches
  for (double& rate : rates) {
    const std::clock_t begin = std::clock();
    round();
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    rate = static_cast<double>(records) / 1e6 / seconds;
  }
  std::nth_element(rates.begin(), rates.begin() + kRounds / 2, rates.end());
  return rates[kRounds / 2];
}

template <typename Consume>
void in_batches(Records records, Consume&& consume) {
  for (; !records.empty(); records = records.subspan(std::min(kBatch, records.size()))) {
    consume(records.first(std::min(kBatch, records.size())));
  }
}

void report(const char* what, double rate, double bytes_per_branch) {
  fmt::print("  {:<28} {:8.1f} M branches/s  {:6.3f} bytes a taken branch\n", what, rate,
             bytes_per_branch);
}

void measure(const char* name, std::size_t functions, std::size_t count) {
  SyntheticRun run{functions, count};
  const Records records{run.records()};
  const auto taken = static_cast<double>(records.size());
  decoder::InsnCache insns{run};
  fmt::print("{}: {} records, {:.2f} not taken each\n", name, records.size(),
             static_cast<double>(run.not_taken()) / taken);

  decoder::PtEncoder encoder{insns};
  std::vector<std::uint8_t> packets;
  std::size_t bytes = 0;
  double rate = median_rate(records.size(), [&] {
    bytes = 0;
    in_batches(records.subspan(1), [&](Records batch) {
      packets.clear();
      encoder.encode(batch, packets);
      bytes += packets.size();
    });
  });
  report("PtEncoder", rate, static_cast<double>(bytes) / taken);

  for (const std::uint64_t size :
       {std::uint64_t{4} << 10U, std::uint64_t{16} << 10U, std::uint64_t{64} << 20U}) {
    decoder::PtHistory history{insns, size};
    rate = median_rate(records.size(), [&] {
      in_batches(records, [&](Records batch) { history.consume(batch); });
    });
    const std::size_t kept = history.read_all(run.pc()).size();
    const double all = static_cast<double>(history.overwritten_bytes() + kept);
    report(fmt::format("PtHistory {} KiB", size >> 10U).c_str(), rate,
           all / taken / static_cast<double>(kRounds + 1));
  }

  decoder::BtsHistory blocks{insns, std::uint64_t{64} << 10U};
  rate = median_rate(records.size(),
                     [&] { in_batches(records, [&](Records batch) { blocks.consume(batch); }); });
  report("BtsHistory 64 KiB", rate, static_cast<double>(sizeof(decoder::Record)));
}

}  // namespace

int main(int argc, char** argv) {
  const long millions = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 2;
  if (millions <= 0 || millions > 1000) {
    fmt::print(stderr, "usage: pt_encode_bench [MILLION_RECORDS]\n");
    return 1;
  }
  const std::size_t count = static_cast<std::size_t>(millions) * 1'000'000;
  measure("small program", 4, count);
  measure("medium program", 100, count);
  measure("large program", 2000, count);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
