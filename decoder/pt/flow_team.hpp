#pragma once
/// @file
/// Intel PT packets -> branch records, by several threads at once.

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

/// How a long stretch is divided.
struct PtThreads {
  unsigned count = 1;  ///< The calling thread among them.
  /// Of packets, at least, in a piece. Records of several pieces wait in memory.
  std::size_t piece_bytes = std::size_t{8} << 10U;
  /// Whether each thread decodes two pieces in turns; unless it is said, where that pays.
  std::optional<bool> in_lanes = std::nullopt;

  /// As many as there are CPUs for us, within reason.
  static PtThreads for_this_machine();
};

/// A PSB says where execution is, and no packet behind it refers to one before it (return
/// compression begins anew, too). So pieces that begin with one are decoded by whoever is free, and
/// joined in their order: each one ends where the PSB of the next has been understood, so that what
/// the next one takes for granted has been seen to be so.
class FlowTeam {
 public:
  /// `code` is borrowed. Each thread has a graph of its own, the calling one `own`.
  FlowTeam(LockedCode& code, FlowGraph& own, PtErrata errata, PtThreads threads);
  FlowTeam(const FlowTeam&) = delete;
  FlowTeam& operator=(const FlowTeam&) = delete;
  ~FlowTeam();

  /// Whether so much is worth dividing.
  [[nodiscard]] bool is_for(std::size_t bytes) const { return bytes >= 4 * threads_.piece_bytes; }
  /// Decodes from the PSB at `offset` on, where `place` is known. Returns what is known at the end;
  /// nothing if there was something that is not for FlowDecoder: somebody has to do it all again,
  /// in one go, for the call stack counts where packets are not as CPUs write them. All graphs but
  /// `own` are made fresh.
  std::optional<PtPlace> run(std::span<const std::uint8_t> packets, std::size_t offset,
                             const PtPlace& place, RecordBatch& out);

 private:
  class Work;

  LockedCode& code_;
  FlowGraph& own_;
  PtErrata errata_;
  PtThreads threads_;
  std::vector<std::unique_ptr<FlowGraph>> others_;
  std::deque<FlowPiece> pieces_;  ///< Whose memory is used again.
};

}  // namespace backtrail::decoder
