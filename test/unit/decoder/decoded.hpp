// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes packets with PtDecoder and with libipt, and compares the results.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "test/support/ipt_oracle.hpp"

namespace backtrail::test {

inline std::string text_of(std::span<const decoder::Record> records, std::size_t from,
                           std::size_t count) {
  std::string out;
  for (std::size_t i = from; i < std::min(from + count, records.size()); ++i) {
    const decoder::Record& record = records[i];
    out += fmt::format(" {:#x}->{:#x}/{}/{}", record.from.value(), record.to.value(),
                       static_cast<int>(record.kind), static_cast<int>(record.reason));
  }
  return out;
}

struct Decoded {
  std::vector<decoder::Record> records;
  bool finished = false;
  std::uint64_t helped = 0;
};

/// @param threads  Number of threads, which divide the stretch at every suitable PSB.
inline Decoded decode(decoder::CodeReader& code, std::span<const std::uint8_t> packets,
                      bool libipt_alone, std::optional<decoder::CpuIdentity> cpu,
                      unsigned threads = 1, bool in_lanes = false) {
  decoder::InsnCache insns{code};
  decoder::PtDecoder decoder{insns, cpu};
  decoder.use_threads({.count = threads, .piece_bytes = 1, .in_lanes = in_lanes});
  if (libipt_alone) decoder.use_libipt_alone();
  Decoded out;
  out.finished = decoder.decode(packets, out.records);
  out.helped = decoder.times_helped();
  return out;
}

/// Checks that both results are equal. If tracing is on at the end, libipt leaves out what the last
/// TNT packet states, and decoding from another PSB may leave out more.
inline testing::AssertionResult same(const Decoded& ours, const Decoded& libipt,
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
           << "; ours" << text_of(ours.records, before, 6) << "; libipt's"
           << text_of(libipt.records, before, 6) << "; finished " << ours.finished << ' '
           << libipt.finished << " helped " << ours.helped << " " << packet_names(packets);
  }
  return testing::AssertionSuccess();
}

/// Compares libipt with PtDecoder on one thread, and on two threads with two pieces in lanes.
inline testing::AssertionResult agree(decoder::CodeReader& code,
                                      std::span<const std::uint8_t> packets,
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

inline void add(std::vector<std::uint8_t>& out, std::span<const std::uint8_t> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace backtrail::test
