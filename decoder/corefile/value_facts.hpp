// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stores recorded values in blocks of a crash file.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

/// Versions: blocks with values of general registers alone, with overwritten bytes, too, with all
/// kinds of values, with code, and with memory.
inline constexpr std::uint32_t kFactsVersion = 1;
inline constexpr std::uint32_t kOldBytesVersion = 2;
inline constexpr std::uint32_t kAllFactsVersion = 3;
inline constexpr std::uint32_t kCodeVersion = 4;
inline constexpr std::uint32_t kMemoryVersion = 5;
/// Most facts in a block; readers refuse more.
inline constexpr std::size_t kBlockFacts = 16384;

/// Appends blocks with the facts of thread `tid`, which are sorted by their records. Numbers of
/// records in the file are `shift` less; facts of earlier records are left out.
void append_facts(std::uint32_t tid, const std::deque<ValueFact>& facts, std::uint64_t shift,
                  std::vector<std::uint8_t>& out);

struct TraceBlock;
/// Appends the facts of a block to `out`. Error kMalformed: damaged, of an unknown version, or not
/// after those in `out`; `out` is then unchanged.
Result<void> decode_facts(const TraceBlock& block, std::vector<ValueFact>& out);

}  // namespace backtrail::decoder
