#pragma once
/// @file
/// Intel PT packets -> branch records, fast, for what user programs do.

#include <cstdint>
#include <optional>
#include <span>

#include "decoder/pt/flow_graph.hpp"
#include "decoder/pt/flow_lanes.hpp"
#include "decoder/pt/leg_stack.hpp"
#include "decoder/pt/pt_errata.hpp"
#include "decoder/pt/pt_place.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "decoder/pt/record_batch.hpp"

namespace backtrail::decoder {

/// Follows packets through a graph of the code. Gives up wherever a packet is none of those that
/// tracing of a user program consists of, or does not fit the code: somebody else goes on from
/// the last PSB then. What it does tell is what libipt's block decoder tells.
class FlowDecoder {
 public:
  /// From where another decoder can go on: a PSB, and what was known there.
  struct Checkpoint {
    std::size_t offset = 0;
    PtPlace place;
    std::size_t records = 0;  ///< Of the batch.
  };

  /// All are borrowed. The graph must be fresh.
  FlowDecoder(FlowGraph& graph, PtErrata errata, std::span<const std::uint8_t> packets,
              RecordBatch& batch)
      : graph_{graph}, errata_{errata}, packets_{packets}, batch_{batch} {}

  /// What is known at the end, or behind the PSB at which it was to stop.
  struct Stop {
    PtPlace place;
    unsigned held = 0;  ///< Of the newest records: they count if what follows was executed. 0 or 1.
  };

  /// Decodes from the PSB at `offset` on, and up to the one at `stop` and the packets that belong
  /// to it, if one is given. Returns whether it came to the end; else what it wrote behind the
  /// checkpoint is to be taken back.
  bool run(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop = {});

  /// The same in parts, for who follows several runs at once: start(), then advance() until it is
  /// not kReady. Between two parts TNT bits may be followed elsewhere, by what is lent, and what is
  /// left of it taken back.
  enum class Progress : std::uint8_t {
    kReady,   ///< Packets full of TNT bits come.
    kDone,    ///< It came to the end.
    kFailed,  ///< It did not.
  };
  void start(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop);
  Progress advance();
  /// From now on nobody else goes on.
  void stay() { yields_ = false; }
  /// TNT packets that did not repeat what is known, those that were lent apart.
  [[nodiscard]] std::size_t followed() const { return followed_; }
  void lend(FlowLane& lane);
  void take_back(FlowLane& lane);
  /// Goes on, while TNT bits are lent, over a TIP that is just what comes. Returns false if
  /// something else does.
  bool tip_in(FlowLane& lane);

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  /// Gives up without trying.
  void skip(const Checkpoint& checkpoint) { checkpoint_ = checkpoint; }
  /// The packet that was too much.
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] Stop stop() const { return {place_, held_}; }

 private:
  /// What a PSB and the packets up to its PSBEND say.
  struct Header {
    bool mode = false;
    std::optional<TraceeAddr> at;
  };

  class MemoWriter;

  bool follow_packets();
  bool yields_at(const std::uint8_t* at);
  void give_up();
  bool is_aside(const PtPacket& packet);
  bool follow();
  bool go_to_end_of_leg();
  void depart(TraceeAddr to);
  Leg* target(Leg& leg, TraceeAddr to);
  bool walk_to(TraceeAddr stop);
  bool tip(TraceeAddr to);
  bool packet();
  bool psb();
  std::optional<Header> header();
  bool ovf();
  bool tip_pge(const PtPacket& packet);
  bool tip_pgd(const PtPacket& packet);
  bool fup(const PtPacket& packet);
  bool mode(const PtPacket& packet);
  [[nodiscard]] bool mode_fits(const PtPacket& packet) const;
  [[nodiscard]] bool tip_pge_follows() const;
  void begin(TraceeAddr at);
  void end();
  [[nodiscard]] PtPacket scan() const { return scan_packet(packets_.subspan(at_)); }
  [[nodiscard]] bool on() const { return leg_ != nullptr; }
  /// All that was said before was used, and nothing hangs in the air.
  [[nodiscard]] bool settled() const { return tnt_count_ == 0 && !fup_; }

  FlowGraph& graph_;
  PtErrata errata_;
  std::span<const std::uint8_t> packets_;
  RecordBatch& batch_;
  std::size_t at_ = 0;  ///< In the packets.
  std::optional<std::size_t> stop_;
  PtLastIp last_ip_;
  bool mode_known_ = false;     ///< The code is what we take it for: 64-bit, or 32-bit.
  bool may_tma_ = false;        ///< A TSC came, and no TMA since.
  bool stopped_ = false;        ///< Behind stop_.
  Leg* leg_ = nullptr;          ///< Execution is at its begin. Null while tracing is off.
  bool at_end_ = false;         ///< No, at its end.
  PtPlace place_;               ///< While tracing is off, or nothing is known.
  std::uint64_t tnt_bits_ = 0;  ///< Not used yet, the oldest highest.
  unsigned tnt_count_ = 0;
  std::optional<TraceeAddr> fup_;  ///< Of which the next TIP or TIP.PGD says more.
  /// The newest record says how execution came to the leg's begin; it counts when something is
  /// known to have run there. 0 or 1.
  unsigned held_ = 0;
  bool yields_ = false;   ///< Others go on where TNT packets come.
  bool ready_ = false;    ///< They came.
  std::size_t from_ = 0;  ///< Where this part began.
  std::size_t followed_ = 0;
  LegStack stack_;
  Checkpoint checkpoint_;
};

}  // namespace backtrail::decoder
