// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Execution on its way through the graph of the code, written down as branch records.

#include <cstdint>
#include <optional>
#include <utility>

#include "decoder/pt/edge_stack.hpp"
#include "decoder/pt/flow_graph.hpp"
#include "decoder/pt/flow_lanes.hpp"
#include "decoder/pt/record_batch.hpp"

namespace backtrail::decoder {

/// Bytes from which FlowWalk::follow() takes short TNT packets.
struct TntBytes {
  const std::uint8_t* at = nullptr;  ///< The next packet.
  const std::uint8_t* end = nullptr;
  /// Packets after this one may be left to lanes; null if none may.
  const std::uint8_t* yields_after = nullptr;
  bool ready = false;  ///< Full TNT packets follow, which lanes may decode.
};

/// The place of execution: an edge of the graph, the TNT bits that are not used yet, and the call
/// stack. Each step appends the records of the branches that it takes.
class FlowWalk {
 public:
  /// Borrows both. The graph must have been refreshed.
  FlowWalk(FlowGraph& graph, RecordBatch& batch) : graph_{graph}, batch_{batch} {}

  /// Forgets the place and the call stack.
  void reset();
  /// Returns true if the place is known and tracing is on.
  [[nodiscard]] bool on() const { return edge_ != nullptr; }
  /// Returns true if all TNT bits are used.
  [[nodiscard]] bool bits_used() const { return tnt_count_ == 0; }
  /// Returns true if execution is at the end of an edge; otherwise it is at its begin.
  [[nodiscard]] bool at_end() const { return at_end_; }
  /// Returns 1 if the newest record, which leads to the place, counts only once something there has
  /// run; otherwise 0.
  [[nodiscard]] unsigned held() const { return held_; }
  [[nodiscard]] TraceeAddr edge_begin() const { return edge_->begin; }
  /// Returns the number of TNT packets followed bit by bit, without those decoded in lanes.
  [[nodiscard]] std::size_t followed() const { return followed_; }

  /// Puts execution at the begin of the edge at `at`. The call stack remains.
  /// @param held  As held().
  void put(TraceeAddr at, unsigned held);
  /// Ends the walk: tracing is off, or the place is lost.
  void leave() {
    edge_ = nullptr;
    at_end_ = false;
  }
  /// Takes back the held record, if there is one.
  void drop_held() { batch_.truncate(std::exchange(held_, 0)); }
  void confirm_held() { held_ = 0; }
  /// Returns false if nothing can have run at the edge's begin: it is unreadable.
  [[nodiscard]] bool can_run() { return graph_.insns().at(edge_->begin).known(); }

  /// Adds TNT bits, the oldest in the highest position of `count`. None may be left.
  void add_bits(std::uint64_t bits, unsigned count) {
    tnt_bits_ = bits;
    tnt_count_ = count;
  }
  /// Uses the TNT bits and those of the short TNT packets that directly follow. Returns false if
  /// they do not fit the code.
  bool follow(TntBytes& bytes);
  /// Returns true if lanes may decode the TNT packets at `at`; notes it in `bytes`.
  bool yields_at(TntBytes& bytes, const std::uint8_t* at) const;
  /// Goes to the next branch that a TIP decides, and takes it to `to`. Returns false if there is
  /// none.
  bool take_tip(TraceeAddr to);
  /// Goes to the next branch that needs a packet; returns it, or nullopt if execution does not get
  /// there. A call there counts as made.
  std::optional<TraceeAddr> go_to_branch();
  /// Goes to `stop` without a packet. Returns false if execution does not get there. Call put() or
  /// leave() afterwards.
  bool walk_to(TraceeAddr stop);

  /// Returns the edge that a TIP leads to; `edge` remembers the newest two.
  Edge* target(Edge& edge, TraceeAddr to) {
    auto& [newest, older] = edge.next;
    if (newest->begin != to) {
      std::swap(newest, older);
      if (newest->begin != to) newest = graph_.at(to);
    }
    return newest;
  }
  /// Lends the place to a lane, and takes it back when `unused` bits of the lane are left.
  void lend(FlowLane& lane);
  void take_back(const FlowLane& lane, unsigned unused);

 private:
  bool go_to_end_of_edge();

  FlowGraph& graph_;
  RecordBatch& batch_;
  Edge* edge_ = nullptr;  ///< Current edge; null while tracing is off or the place is unknown.
  bool at_end_ = false;
  std::uint64_t tnt_bits_ = 0;  ///< Unused TNT bits, the oldest in the highest position.
  unsigned tnt_count_ = 0;
  unsigned held_ = 0;
  std::size_t followed_ = 0;
  EdgeStack stack_;
};

}  // namespace backtrail::decoder
