#pragma once
/// @file
/// Pieces of a stretch of packets, each decoded by itself, and several of them in turns.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "decoder/pt/flow_decoder.hpp"

namespace backtrail::decoder {

/// Where nothing is handed on.
class Nobody : public TraceConsumer {
 public:
  void consume(std::span<const Record> /*records*/) override {}
};

/// A piece: what is to be decoded, and what came of it.
struct FlowPiece {
  std::size_t begin = 0;
  PtPlace place;
  std::optional<std::size_t> stop;  ///< Where the next one begins.
  Nobody nobody;
  RecordBatch records{nobody, RecordBatch::HandsOn::kNever};
  bool done = false;
  bool taken = false;  ///< The records are where they should be.
  bool fits = false;
  FlowDecoder::Stop end;
};

/// The pieces that one thread decodes in turns.
class PieceLanes {
 public:
  /// All are borrowed, as are the pieces.
  PieceLanes(FlowGraph& graph, PtErrata errata, std::span<const std::uint8_t> packets);
  PieceLanes(const PieceLanes&) = delete;
  PieceLanes& operator=(const PieceLanes&) = delete;

  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] bool full() const { return count_ == kFlowLanes; }
  /// One more; it is not full.
  void begin(FlowPiece& piece);
  /// Decodes until one piece is, and lets go of that. It is not empty.
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
  unsigned active_ = 0;  ///< The lanes that TNT bits are lent to.
  LegStack no_stack_;
  std::array<Record, kFlowLanes> no_records_{};
};

}  // namespace backtrail::decoder
