// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/piece_lanes.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace backtrail::decoder {

PieceLanes::PieceLanes(FlowGraph& graph, PtErrata errata, std::span<const std::uint8_t> packets)
    : graph_{graph}, errata_{errata}, packets_{packets} {
  for (unsigned i = 0; i < kFlowLanes; ++i) make_idle(i);
}

void PieceLanes::begin(FlowPiece& piece) {
  const auto free = std::find(pieces_.begin(), pieces_.end(), nullptr);
  *free = &piece;
  ++count_;
  piece.records.clear();
  const auto lane = static_cast<unsigned>(free - pieces_.begin());
  flows_[lane].emplace(graph_, errata_, packets_, piece.records);
  flows_[lane]->start(piece.begin, piece.place, piece.stop);
  advance(lane);
}

FlowPiece& PieceLanes::run() {
  for (;;) {
    for (unsigned i = 0; i < kFlowLanes; ++i) {
      if (pieces_[i] == nullptr || (active_ >> i & 1U) != 0) continue;
      --count_;
      return *std::exchange(pieces_[i], nullptr);
    }
    const bool last = std::has_single_bit(active_);
    const unsigned stopped = last ? active_ : follow_lanes(lanes_, active_);
    for (unsigned i = 0; i < kFlowLanes; ++i) {
      if ((stopped >> i & 1U) == 0 || (!last && flows_[i]->tip_in(lanes_[i]))) continue;
      flows_[i]->take_back(lanes_[i]);
      if (last) flows_[i]->stay();
      advance(i);
    }
  }
}

void PieceLanes::make_idle(unsigned lane) {
  lanes_[lane] = {.edge = &idle_edge(),
                  .out = &no_records_[lane],
                  .stack = no_stack_.lend(),
                  .full = &no_records_[lane],
                  .mark = {}};
  active_ &= ~(1U << lane);
}

void PieceLanes::advance(unsigned lane) {
  const FlowDecoder::Progress progress = flows_[lane]->advance();
  if (progress == FlowDecoder::Progress::kReady) {
    flows_[lane]->lend(lanes_[lane]);
    active_ |= 1U << lane;
    return;
  }
  pieces_[lane]->fits = progress == FlowDecoder::Progress::kDone;
  pieces_[lane]->end = flows_[lane]->stop();
  make_idle(lane);
}

}  // namespace backtrail::decoder
