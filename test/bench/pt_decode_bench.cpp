// Measures how fast Intel PT becomes branch records.
//
// usage: pt_decode_bench [CRASH_FILE...]
//
// Prints for each stream its density and its rates: of packets (MB/s), of records (taken branches,
// that is blocks) and of decisions (TNT bits and TIPs: a packet's information about one branch).
// Rates of one thread are by CPU time, those of several threads by wall time; each is the median of
// several rounds. Crash files are those of `backtrail record`; the thread with the most records is
// decoded. The last line is the slowest stream.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "decoder/corefile/trace_archive.hpp"
#include "decoder/pt/pt_decoder.hpp"
#include "decoder/pt/pt_history.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "ptrace/core/program_memory.hpp"
#include "test/bench/synthetic_run.hpp"

namespace {

namespace decoder = backtrail::decoder;
using backtrail::TraceeAddr;
using Packets = std::vector<std::uint8_t>;

constexpr std::size_t kRecords = 2'000'000;

/// Adds the records up: the cheapest consumer that looks at each record.
class Sum : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    for (const decoder::Record& record : records) sum += record.to.value();
    count += records.size();
  }
  std::uint64_t sum = 0;
  std::uint64_t count = 0;
};

/// Two nested loops, the inner of eight iterations. Each iteration takes one of two paths, by a
/// pattern. All branches are conditional jumps.
class Loops : public decoder::CodeReader {
 public:
  explicit Loops(std::size_t records) {
    const TraceeAddr outer = kBase;
    records_.push_back(decoder::gap(decoder::GapReason::kStart, {}, outer));
    for (std::size_t turn = 0; records_.size() < records; ++turn) {
      for (unsigned i = 0; i < 8; ++i) {
        if ((turn + i) % 3 != 0) records_.push_back(decoder::branch(outer, outer + 5));
        if (i != 7) records_.push_back(decoder::branch(outer + 8, outer));
      }
      records_.push_back(decoder::branch(outer + 10, outer));
    }
  }
  [[nodiscard]] backtrail::arch::Isa isa() const override { return backtrail::arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    // 0: jz 5; mov; 5: mov; 8: jnz 0; 10: jnz 0; ret
    static constexpr std::array<std::uint8_t, 13> kCode{0x74, 0x03, 0x48, 0x89, 0xc8, 0x48, 0x89,
                                                        0xc8, 0x75, 0xf6, 0x75, 0xf4, 0xc3};
    if (address < kBase || address - kBase >= kCode.size()) return 0;
    const auto rest = std::span{kCode}.subspan(address - kBase);
    const std::size_t count = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), count, out.begin());
    return count;
  }
  [[nodiscard]] const std::vector<decoder::Record>& records() const { return records_; }

 private:
  static constexpr TraceeAddr kBase{0x40'0000};
  std::vector<decoder::Record> records_;
};

double now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Returns the median of the seconds that a round takes.
double seconds(const std::function<void()>& round, clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  constexpr std::size_t kRounds = 9;
  std::array<double, kRounds> times{};
  round();
  for (double& time : times) {
    const double begin = now(clock);
    round();
    time = now(clock) - begin;
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2];
}

std::uint64_t decisions(const Packets& packets) {
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < packets.size();) {
    const decoder::PtPacket packet = decoder::scan_packet(std::span{packets}.subspan(at));
    if (packet.size == 0) break;
    if (packet.kind == decoder::PtKind::kTip) ++count;
    if (packet.kind == decoder::PtKind::kTnt8) {
      count += static_cast<unsigned>(std::bit_width(packets[at])) - 2;
    }
    at += packet.size;
  }
  return count;
}

/// Slowest stream of all.
struct Slowest {
  std::string name;
  double rate = 0;

  void add(const char* stream, double megabytes) {
    if (!name.empty() && megabytes >= rate) return;
    name = stream;
    rate = megabytes;
  }
};
Slowest slowest;  // the program's only result

void measure(const char* name, decoder::CodeReader& code,
             const std::vector<decoder::Record>& records) {
  decoder::InsnCache insns{code};
  decoder::PtHistory history{insns, std::uint64_t{1} << 32U};
  history.consume(records);
  const Packets packets = history.read_all(records.back().to);
  const auto bytes = static_cast<double>(packets.size());
  const auto branches = static_cast<double>(records.size() - 1);
  fmt::print("{}: {:.1f} M taken branches in {:.2f} MB, {:.3f} bytes each\n", name, branches / 1e6,
             bytes / 1e6, bytes / branches);
  const auto decided = static_cast<double>(decisions(packets));
  const auto row = [&](const char* what, double time) {
    fmt::print("  {:<24}{:8.1f} MB/s{:8.1f} M records/s{:8.1f} M decisions/s\n", what,
               bytes / time / 1e6, branches / time / 1e6, decided / time / 1e6);
  };
  decoder::PtDecoder decoder{insns};
  const decoder::PtThreads all = decoder::PtThreads::for_this_machine();
  decoder.use_threads({.count = 1});
  Sum sum;
  row("to a consumer", seconds([&] { decoder.decode(packets, sum); }));
  const auto by_all = [&] { decoder.decode(packets, sum); };
  decoder.use_threads(all);
  const double cpu_time = seconds(by_all);
  const double wall_time = seconds(by_all, CLOCK_MONOTONIC);
  row(fmt::format("{} threads, CPU time", all.count).c_str(), cpu_time);
  row(fmt::format("{} threads, wall time", all.count).c_str(), wall_time);
  slowest.add(name, bytes / wall_time / 1e6);
  if (sum.count != 30 * records.size()) fmt::print("WRONG: {} records\n", sum.count / 30);
  decoder.use_threads({.count = 1});
  std::vector<decoder::Record> out;
  row("to memory", seconds([&] {
        out.clear();
        decoder.decode(packets, out);
      }));
  if (out != records) fmt::print("(not the records it was made of)\n");
  if (decoder.times_helped() != 0) fmt::print("(helped {} times)\n", decoder.times_helped());
  decoder::PtDecoder libipt{insns};
  libipt.use_libipt_alone();
  // Decodes a part only, because libipt is slow.
  const auto front = std::span{packets}.first(std::min<std::size_t>(packets.size(), 1U << 15U));
  const double time = seconds([&] { libipt.decode(front, sum); });
  row("libipt, from memory", time * bytes / static_cast<double>(front.size()));
}

void measure_file(const char* path) {
  const auto file = backtrail::tracee::MappedFile::open(path);
  if (!file) return fmt::print(stderr, "{}: {}\n", path, file.error().message());
  const auto core = decoder::CoreFile::parse(file->bytes());
  if (!core) return fmt::print(stderr, "{}: {}\n", path, core.error().message());
  const decoder::TraceArchive archive{*core};
  std::uint32_t tid = 0;
  std::uint64_t most = 0;
  for (const auto& [id, thread] : archive.threads()) {
    if (thread.records <= most) continue;
    most = thread.records;
    tid = id;
  }
  backtrail::tracee::ProgramMemory memory{*core};
  const std::vector<decoder::Record> records = archive.load(tid);
  if (records.size() > 1) measure(path, memory, records);
}

}  // namespace

int main(int argc, char** argv) {
  Loops loops{kRecords};
  measure("loops", loops, loops.records());
  for (const std::size_t functions : {1U, 10U, 100U}) {
    backtrail::bench::SyntheticRun run{functions, kRecords};
    measure(fmt::format("random directions, {} functions", 7 * functions).c_str(), run,
            run.records());
  }
  for (int i = 1; i < argc; ++i) measure_file(argv[i]);
  fmt::print("PT to blocks, the slowest stream: {:.0f} MB/s ({})\n", slowest.rate, slowest.name);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
