#include "decoder/pt/flow_team.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace backtrail::decoder {
namespace {

/// More do not pay: somebody has to take the records in their order.
constexpr unsigned kMostThreads = 8;
/// Pieces for each thread that are decoded ahead of their turn.
constexpr std::size_t kAhead = 2;
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

struct FlowTeam::Piece {
  std::size_t begin = 0;
  PtPlace place;
  std::optional<std::size_t> stop;  ///< Where the next one begins.
  Nobody nobody;
  RecordBatch records{nobody, RecordBatch::HandsOn::kNever};
  bool done = false;
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
    std::unique_lock lock{mutex_};
    for (;;) {
      changed_.wait(lock, [this] { return over_ || can_claim(); });
      if (over_ || !next_begin_) return;
      decode_one(graph, lock);
    }
  }

  /// Hands out the records of all pieces in their order, and decodes where it would have to wait.
  std::optional<PtPlace> take_all(FlowGraph& graph, RecordBatch& out) {
    std::optional<PtPlace> end;
    std::unique_lock lock{mutex_};
    for (;; ++taken_, changed_.notify_all()) {
      Piece& piece = pieces_[taken_ % pieces_.size()];
      while (claimed_ <= taken_ || !piece.done) {
        if (next_begin_ && can_claim()) {
          decode_one(graph, lock);
        } else {
          changed_.wait(lock);
        }
      }
      if (!piece.fits) break;
      lock.unlock();
      out.pass_on(piece.records.all(), piece.end.held);
      lock.lock();
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
    piece.done = false;
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

  void decode_one(FlowGraph& graph, std::unique_lock<std::mutex>& lock) {
    Piece& piece = claim();
    lock.unlock();
    piece.records.clear();
    FlowDecoder flow{graph, team_.errata_, packets_, piece.records};
    piece.fits = flow.run(piece.begin, piece.place, piece.stop);
    piece.end = flow.stop();
    lock.lock();
    piece.done = true;
    changed_.notify_all();
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
