// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes independent pieces of a stretch of packets, several in turns.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decoder/pt/flow_decoder.hpp"

namespace backtrail::decoder {

/// A consumer that ignores everything.
class Nobody : public TraceConsumer {
 public:
  void consume(std::span<const Record> /*records*/) override {}
};

/// A piece and its result.
struct FlowPiece {
  std::size_t begin = 0;
  PtPlace place;
  std::optional<std::size_t> stop;  ///< Offset where the next piece begins; nullopt for the last.
  Nobody nobody;
  RecordBatch records{nobody, RecordBatch::HandsOn::kNever};
  bool done = false;
  bool taken = false;  ///< The records were already passed on.
  bool fits = false;
  FlowDecoder::Stop end;
};

/// The pieces that one thread decodes in turns.
class PieceLanes {
 public:
  /// Borrows all arguments, and the pieces.
  PieceLanes(FlowGraph& graph, PtErrata errata, std::span<const std::uint8_t> packets);
  PieceLanes(const PieceLanes&) = delete;
  PieceLanes& operator=(const PieceLanes&) = delete;

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool full() const { return count_ == kFlowLanes; }
  /// Adds a piece. full() must be false.
  void begin(FlowPiece& piece);
  /// Decodes until a piece is done, and returns and removes it. empty() must be false.
  FlowPiece& run();

 private:
  void make_idle(unsigned lane);
  void advance(unsigned lane);

  FlowGraph& graph_;
  PtErrata errata_;
  std::span<const std::uint8_t> packets_;
  std::array<FlowPiece*, kFlowLanes> pieces_{};
  std::array<std::optional<FlowDecoder>, kFlowLanes> flows_;
  FlowLanes lanes_;
  unsigned count_ = 0;
  unsigned active_ = 0;  ///< Mask of the lanes that hold lent TNT bits.
  EdgeStack no_stack_;
  std::array<Record, kFlowLanes> no_records_{};
};

}  // namespace backtrail::decoder
