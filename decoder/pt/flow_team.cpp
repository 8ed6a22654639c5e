// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_team.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "decoder/pt/piece_lanes.hpp"

namespace backtrail::decoder {
namespace {

/// More threads do not help, because records are collected in order.
constexpr unsigned kMostThreads = 8;
/// Pieces that each thread decodes ahead of their turn. Few, so that their records stay in the
/// CPU's caches.
constexpr std::size_t kAhead = kFlowLanes + 1;
constexpr std::size_t kPsbBytes = 16;

/// Returns true for packets that may be between a PSB and the first branch after it.
bool may_stand_before_branches(PtKind kind) {
  switch (kind) {
    case PtKind::kPad:
    case PtKind::kTsc:
    case PtKind::kTma:
    case PtKind::kMtc:
    case PtKind::kCyc:
    case PtKind::kCbr:
      return true;
    default:
      return false;
  }
}

/// Returns the place of execution at a PSB if its packets show that execution continued from there.
/// Decoding that begins there then knows as much as decoding that reaches it.
std::optional<TraceeAddr> place_of_joint(std::span<const std::uint8_t> packets,
                                         std::size_t offset) {
  PtLastIp last_ip;
  std::optional<std::uint64_t> place;
  bool mode = false;
  bool header = true;
  for (std::size_t at = offset + kPsbBytes; at < packets.size();) {
    const PtPacket packet = scan_packet(packets.subspan(at));
    at += packet.size;
    if (packet.kind == PtKind::kTnt8 || packet.kind == PtKind::kTip) {
      if (header || !mode || !place) return std::nullopt;
      return TraceeAddr{*place};
    }
    if (packet.kind == PtKind::kPsbEnd) {
      header = false;
    } else if (header && packet.kind == PtKind::kFup) {
      place = last_ip.update(packet);
    } else if (header && packet.kind == PtKind::kMode) {
      mode = mode || packet.payload >> 5U == 0;
    } else if (header && packet.kind == PtKind::kPip) {
      continue;
    } else if (!may_stand_before_branches(packet.kind)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

/// Chooses how one thread decodes. Repetitive traces are fastest by whole packets (memos), others
/// with two pieces in lanes. Measures each piece decoded alone.
class Gait {
 public:
  explicit Gait(std::optional<bool> always) : always_{always} {}

  /// Returns true if the next piece should be decoded in lanes.
  [[nodiscard]] bool in_lanes() {
    if (always_) return *always_;
    if (in_lanes_ == 0) return false;
    --in_lanes_;
    return true;
  }
  /// Takes the measurements of a piece of `bytes` bytes.
  void learn(const FlowDecoder& flow, std::size_t bytes) {
    constexpr std::size_t kOneOf = 4;  // More than one byte in four is an unknown TNT packet.
    constexpr unsigned kEnough = 3;    // Consecutive pieces.
    constexpr unsigned kPieces = 32;
    const bool is_new = flow.followed() * kOneOf > bytes;
    new_pieces_ = is_new ? new_pieces_ + 1 : 0;
    if (new_pieces_ >= kEnough) in_lanes_ = kPieces;
  }

 private:
  std::optional<bool> always_;
  unsigned in_lanes_ = 0;  ///< Number of pieces left to decode in lanes.
  unsigned new_pieces_ = 0;
};

/// One run: pieces in a ring, claimed in order, decoded in any order, collected in order.
class FlowTeam::Work {
 public:
  Work(FlowTeam& team, std::span<const std::uint8_t> packets, std::size_t offset,
       const PtPlace& place)
      : team_{team},
        pieces_{team.pieces_},
        packets_{packets},
        next_begin_{offset},
        next_place_{place} {}

  /// Decodes pieces until none are left. For the other threads.
  void help(FlowGraph& graph) {
    graph.refresh();
    Gait gait{team_.threads_.in_lanes};
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return over_ || !next_begin_ || can_claim(); });
      if (over_ || !next_begin_) return;
      decode_some(graph, gait, lock);
    }
  }

  /// Passes on the records of all pieces in order, and decodes instead of waiting.
  std::optional<PtPlace> take_all(FlowGraph& graph, RecordBatch& out) {
    Gait gait{team_.threads_.in_lanes};
    std::unique_lock lock{mutex_};
    for (;;) {
      take_done(lock, out);
      if (over_) return end_;
      if (can_claim()) {
        decode_some(graph, gait, lock, &out);
      } else {
        changed_.wait(lock);
      }
    }
  }

 private:
  [[nodiscard]] bool can_claim() const { return next_begin_ && claimed_ < taken_ + pieces_.size(); }
  /// Passes on the records of the next pieces that are done.
  void take_done(std::unique_lock<std::mutex>& lock, RecordBatch& out) {
    while (!over_ && taken_ < claimed_) {
      FlowPiece& piece = pieces_[taken_ % pieces_.size()];
      if (!piece.done) return;
      if (piece.fits && !piece.taken) {
        lock.unlock();
        out.pass_on(piece.records.all(), piece.end.held);
        lock.lock();
      }
      ++taken_;
      over_ = !piece.fits || !piece.stop;
      if (piece.fits && over_) end_ = piece.end.place;
      changed_.notify_all();
    }
  }
  FlowPiece& claim() {
    FlowPiece& piece = pieces_[claimed_++ % pieces_.size()];
    piece.begin = *next_begin_;
    piece.place = next_place_;
    piece.done = piece.taken = false;
    piece.stop.reset();
    std::size_t from = piece.begin + team_.threads_.piece_bytes;
    while (const auto psb = find_psb(packets_, from)) {
      if (const auto at = place_of_joint(packets_, *psb)) {
        piece.stop = psb;
        next_place_ = {PtPlace::Kind::kAt, GapReason::kNone, *at, {}};
        break;
      }
      from = *psb + kPsbBytes;
    }
    next_begin_ = piece.stop;
    return piece;
  }

  /// Decodes one piece, or several in lanes. If there are no other threads, the records of the next
  /// piece in order go directly to `out`, which only take_all() gives.
  void decode_some(FlowGraph& graph, Gait& gait, std::unique_lock<std::mutex>& lock,
                   RecordBatch* out = nullptr) {
    if (gait.in_lanes()) return decode_in_lanes(graph, gait, lock, out);
    const bool next = claimed_ == taken_ && team_.threads_.count == 1;
    FlowPiece& piece = claim();
    lock.unlock();
    decode_alone(graph, gait, piece, next ? out : nullptr);
    lock.lock();
    finish(piece);
  }
  void finish(FlowPiece& piece) {
    piece.done = true;
    changed_.notify_all();
  }

  void decode_alone(FlowGraph& graph, Gait& gait, FlowPiece& piece, RecordBatch* out) {
    piece.records.clear();
    piece.taken = out != nullptr;
    FlowDecoder flow{graph, team_.errata_, packets_, out == nullptr ? piece.records : *out};
    piece.fits = flow.run(piece.begin, piece.place, piece.stop);
    piece.end = flow.stop();
    gait.learn(flow, flow.at() - piece.begin);
  }

  void decode_in_lanes(FlowGraph& graph, Gait& gait, std::unique_lock<std::mutex>& lock,
                       RecordBatch* out) {
    PieceLanes lanes{graph, team_.errata_, packets_};
    lanes.begin(claim());
    for (;;) {
      while (!lanes.full() && !over_ && can_claim() && gait.in_lanes()) lanes.begin(claim());
      if (lanes.empty()) return;
      lock.unlock();
      FlowPiece& piece = lanes.run();
      lock.lock();
      finish(piece);
      if (out != nullptr) take_done(lock, *out);
    }
  }

  FlowTeam& team_;
  std::deque<FlowPiece>& pieces_;
  std::span<const std::uint8_t> packets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t claimed_ = 0;
  std::size_t taken_ = 0;
  std::optional<std::size_t> next_begin_;
  PtPlace next_place_;
  bool over_ = false;
  std::optional<PtPlace> end_;  ///< State at the end of the run, if all pieces were decoded.
};

PtThreads PtThreads::for_this_machine() {
  return {.count = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads)};
}

FlowTeam::FlowTeam(LockedCode& code, FlowGraph& own, PtErrata errata, PtThreads threads)
    : code_{code}, own_{own}, errata_{errata}, threads_{threads} {}

FlowTeam::~FlowTeam() = default;

std::optional<PtPlace> FlowTeam::run(std::span<const std::uint8_t> packets, std::size_t offset,
                                     const PtPlace& place, RecordBatch& out) {
  while (others_.size() + 1 < threads_.count) others_.push_back(std::make_unique<FlowGraph>(code_));
  if (pieces_.empty()) pieces_.resize(std::size_t{threads_.count} * kAhead);
  Work work{*this, packets, offset, place};
  std::vector<std::thread> threads;
  for (const auto& graph : others_) {
    threads.emplace_back([&work, &graph = *graph] { work.help(graph); });
  }
  const auto end = work.take_all(own_, out);
  for (std::thread& thread : threads) thread.join();
  return end;
}

}  // namespace backtrail::decoder
