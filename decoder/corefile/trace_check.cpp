// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/trace_check.hpp"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace backtrail::decoder {
namespace {

constexpr unsigned kMostThreads = 8;
constexpr std::size_t kWorthAThread = 16;

/// Returns the counts of each block; an error for damaged ones.
std::vector<Result<BlockCounts>> count_all(const std::vector<const TraceBlock*>& blocks) {
  std::vector<Result<BlockCounts>> out(blocks.size(), BlockCounts{});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < blocks.size(); i = next++) out[i] = count_block(*blocks[i]);
  };
  const std::size_t wanted = std::min<std::size_t>(
      {std::thread::hardware_concurrency(), kMostThreads, blocks.size() / kWorthAThread + 1});
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < wanted) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // Fewer helpers only make it slower.
  }
  work();
  for (std::thread& helper : helpers) helper.join();
  return out;
}

}  // namespace

std::map<std::uint32_t, ThreadCheck> check_traces(const TraceArchive& archive) {
  std::vector<const TraceBlock*> blocks;
  for (const auto& [tid, thread] : archive.threads()) {
    for (const TraceBlock& block : thread.blocks) blocks.push_back(&block);
  }
  const auto counts = count_all(blocks);
  std::map<std::uint32_t, ThreadCheck> out;
  std::size_t at = 0;
  for (const auto& [tid, thread] : archive.threads()) {
    ThreadCheck& check = out[tid];
    std::uint64_t readable = 0;
    for (const TraceBlock& block : thread.blocks) {
      const auto& count = counts[at++];
      if (!count) continue;
      readable += block.records;
      check.branches += block.records - count->others;
      check.lost_between += count->lost;
      check.lost_is_exact = check.lost_is_exact && count->lost_is_exact;
    }
    check.missing = thread.promised - std::min(thread.promised, readable);
  }
  return out;
}

}  // namespace backtrail::decoder
