#include "decoder/pt/flow_team.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace backtrail::decoder {
namespace {

/// More do not pay: somebody has to take the records in their order.
constexpr unsigned kMostThreads = 8;
/// Pieces for each thread that are decoded ahead of their turn.
constexpr std::size_t kAhead = 2 * kFlowLanes;
constexpr std::size_t kPsbBytes = 16;

/// Packets that may stand between a PSB and the first branch behind it.
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

/// Where execution is at a PSB, if the packets say that it went on from there: whoever begins here
/// knows all that somebody knows who comes by.
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

class Nobody : public TraceConsumer {
 public:
  void consume(std::span<const Record> /*records*/) override {}
};

}  // namespace

/// How one thread decodes. What repeats itself is known by whole packets; of the rest two pieces at
/// once are faster. Which it is shows when one piece is decoded.
class Gait {
 public:
  explicit Gait(std::optional<bool> always) : always_{always} {}

  /// Two at once this time?
  [[nodiscard]] bool in_lanes() {
    if (always_) return *always_;
    if (groups_ == 0) return false;
    --groups_;
    return true;
  }
  /// So many bytes were decoded.
  void learn(const FlowDecoder& flow, std::size_t bytes) {
    constexpr std::size_t kOneOf = 4;  // bytes is a TNT packet of which nothing was known
    constexpr unsigned kEnough = 3;    // pieces in a row
    constexpr unsigned kGroups = 4;
    const bool is_new = flow.followed() * kOneOf > bytes;
    new_pieces_ = is_new ? new_pieces_ + 1 : 0;
    if (new_pieces_ >= kEnough) groups_ = kGroups;
  }

 private:
  std::optional<bool> always_;
  unsigned groups_ = 0;  ///< So many more in lanes.
  unsigned new_pieces_ = 0;
};

struct FlowTeam::Piece {
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

/// One run: pieces in a ring, claimed in their order, decoded in any, taken in their order.
class FlowTeam::Work {
 public:
  Work(FlowTeam& team, std::span<const std::uint8_t> packets, std::size_t offset,
       const PtPlace& place)
      : team_{team},
        pieces_{team.pieces_},
        packets_{packets},
        next_begin_{offset},
        next_place_{place} {}

  /// Decodes pieces until there are none. For the other threads.
  void help(FlowGraph& graph) {
    graph.refresh();
    Gait gait{team_.threads_.in_lanes};
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return over_ || can_claim(); });
      if (over_ || !next_begin_) return;
      decode_some(graph, gait, lock);
    }
  }

  /// Hands out the records of all pieces in their order, and decodes where it would have to wait.
  std::optional<PtPlace> take_all(FlowGraph& graph, RecordBatch& out) {
    std::optional<PtPlace> end;
    Gait gait{team_.threads_.in_lanes};
    std::unique_lock lock{mutex_};
    for (;; ++taken_, changed_.notify_all()) {
      Piece& piece = pieces_[taken_ % pieces_.size()];
      while (claimed_ <= taken_ || !piece.done) {
        if (next_begin_ && can_claim()) {
          decode_some(graph, gait, lock, &out);
        } else {
          changed_.wait(lock);
        }
      }
      if (!piece.fits) break;
      if (!piece.taken) {
        lock.unlock();
        out.pass_on(piece.records.all(), piece.end.held);
        lock.lock();
      }
      if (piece.stop) continue;
      end = piece.end.place;
      break;
    }
    over_ = true;
    changed_.notify_all();
    return end;
  }

 private:
  [[nodiscard]] bool can_claim() const {
    return !next_begin_ || claimed_ < taken_ + pieces_.size();
  }
  Piece& claim() {
    Piece& piece = pieces_[claimed_++ % pieces_.size()];
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

  /// One piece, or as many as there are lanes. Where nobody else decodes, the records of one that
  /// is next go to `out`, if there is one.
  void decode_some(FlowGraph& graph, Gait& gait, std::unique_lock<std::mutex>& lock,
                   RecordBatch* out = nullptr) {
    std::array<Piece*, kFlowLanes> pieces{};
    unsigned count = 0;
    const bool next = claimed_ == taken_ && team_.threads_.count == 1;
    const unsigned wanted = gait.in_lanes() ? kFlowLanes : 1;
    while (count < wanted && next_begin_ && can_claim()) pieces[count++] = &claim();
    lock.unlock();
    if (count == 1) {
      decode_alone(graph, gait, *pieces[0], next ? out : nullptr);
    } else {
      decode_together(graph, std::span{pieces}.first(count));
    }
    lock.lock();
    for (Piece* piece : std::span{pieces}.first(count)) piece->done = true;
    changed_.notify_all();
  }

  void decode_alone(FlowGraph& graph, Gait& gait, Piece& piece, RecordBatch* out) {
    piece.records.clear();
    piece.taken = out != nullptr;
    FlowDecoder flow{graph, team_.errata_, packets_, out == nullptr ? piece.records : *out};
    piece.fits = flow.run(piece.begin, piece.place, piece.stop);
    piece.end = flow.stop();
    gait.learn(flow, flow.at() - piece.begin);
  }

  void decode_together(FlowGraph& graph, std::span<Piece* const> pieces) {
    std::array<std::optional<FlowDecoder>, kFlowLanes> flows;
    FlowLanes lanes;
    unsigned active = 0;
    LegStack no_stack;
    std::array<Record, kFlowLanes> no_records{};
    const auto make_idle = [&](unsigned i) {
      lanes[i] = {.leg = &idle_leg(),
                  .out = &no_records[i],
                  .stack = no_stack.lend(),
                  .full = &no_records[i]};
      active &= ~(1U << i);
    };
    const auto advance = [&](unsigned i) {
      const FlowDecoder::Progress progress = flows[i]->advance();
      if (progress == FlowDecoder::Progress::kReady) {
        flows[i]->lend(lanes[i]);
        active |= 1U << i;
        return;
      }
      pieces[i]->fits = progress == FlowDecoder::Progress::kDone;
      pieces[i]->end = flows[i]->stop();
      make_idle(i);
    };
    for (unsigned i = 0; i < kFlowLanes; ++i) {
      make_idle(i);
      if (i >= pieces.size()) continue;
      Piece& piece = *pieces[i];
      piece.records.clear();
      flows[i].emplace(graph, team_.errata_, packets_, piece.records);
      flows[i]->start(piece.begin, piece.place, piece.stop);
      advance(i);
    }
    while (active != 0) {
      const bool last = std::has_single_bit(active);
      const unsigned stopped = last ? active : follow_lanes(lanes, active);
      for (unsigned i = 0; i < kFlowLanes; ++i) {
        if ((stopped >> i & 1U) == 0) continue;
        flows[i]->take_back(lanes[i]);
        if (last) flows[i]->stay();
        advance(i);
      }
    }
  }

  FlowTeam& team_;
  std::deque<Piece>& pieces_;
  std::span<const std::uint8_t> packets_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t claimed_ = 0;
  std::size_t taken_ = 0;
  std::optional<std::size_t> next_begin_;
  PtPlace next_place_;
  bool over_ = false;
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
