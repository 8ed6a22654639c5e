// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes Intel PT packets into branch records with several threads.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decoder/pt/flow_decoder.hpp"
#include "decoder/pt/locked_code.hpp"

namespace backtrail::decoder {

struct FlowPiece;

/// How a long stretch is divided among threads.
struct PtThreads {
  unsigned count = 1;  ///< Includes the calling thread.
  /// Least bytes of packets in a piece. The records of several pieces wait in memory.
  std::size_t piece_bytes = std::size_t{8} << 10U;
  /// Whether each thread decodes two pieces in lanes; nullopt to decide by measurement.
  std::optional<bool> in_lanes = std::nullopt;

  /// Returns settings for the machine's CPUs, up to a bound.
  static PtThreads for_this_machine();
};

/// Divides a stretch at PSBs. A PSB states the place of execution, and packets after it do not
/// refer to earlier ones (return compression restarts, too). Any thread may decode a piece, and the
/// results are joined in order. A piece ends after the next piece's PSB has been decoded, which
/// confirms the next piece's starting place.
class FlowTeam {
 public:
  /// Borrows `code` and `own`, the calling thread's graph. Each other thread has a graph of its
  /// own.
  FlowTeam(LockedCode& code, FlowGraph& own, PtErrata errata, PtThreads threads);
  FlowTeam(const FlowTeam&) = delete;
  FlowTeam& operator=(const FlowTeam&) = delete;
  ~FlowTeam();

  /// Returns true if that number of bytes is worth dividing.
  [[nodiscard]] bool is_for(std::size_t bytes) const { return bytes >= 4 * threads_.piece_bytes; }
  /// Decodes from the PSB at `offset`, where `place` is known. Returns the place at the end;
  /// nullopt if some packet is not for FlowDecoder. The caller must then decode everything again in
  /// one run, because the call stack matters if packets are not as CPUs write them. Refreshes all
  /// graphs but `own`.
  std::optional<PtPlace> run(std::span<const std::uint8_t> packets, std::size_t offset,
                             const PtPlace& place, RecordBatch& out);

 private:
  class Work;

  LockedCode& code_;
  FlowGraph& own_;
  PtErrata errata_;
  PtThreads threads_;
  std::vector<std::unique_ptr<FlowGraph>> others_;
  std::deque<FlowPiece> pieces_;  ///< Kept to reuse their memory.
};

}  // namespace backtrail::decoder
