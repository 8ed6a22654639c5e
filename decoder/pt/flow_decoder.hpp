// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes Intel PT packets into branch records: a fast decoder for user programs.

#include <cstdint>
#include <optional>
#include <span>

#include "decoder/pt/flow_walk.hpp"
#include "decoder/pt/pt_errata.hpp"
#include "decoder/pt/pt_place.hpp"
#include "decoder/pt/pt_scanner.hpp"

namespace backtrail::decoder {

/// Follows packets through a graph of the code. Fails at a packet that tracing a user program does
/// not produce, or that does not fit the code; libipt then continues from the last PSB. Records are
/// equal to those from libipt's block decoder.
class FlowDecoder {
 public:
  /// A PSB from which another decoder can continue, and the state there.
  struct Checkpoint {
    std::size_t offset = 0;
    PtPlace place;
    std::size_t records = 0;  ///< Number of records in the batch.
  };

  /// Borrows all arguments. The graph must have been refreshed.
  FlowDecoder(FlowGraph& graph, PtErrata errata, std::span<const std::uint8_t> packets,
              RecordBatch& batch)
      : graph_{graph}, errata_{errata}, packets_{packets}, batch_{batch}, walk_{graph, batch} {}

  /// The state at the end, or after the PSB at which decoding stopped.
  struct Stop {
    PtPlace place;
    unsigned held = 0;  ///< Number of newest records, 0 or 1, that count only if something after
                        ///< them was executed.
  };

  /// Decodes from the PSB at `offset` to the end, or through the PSB at `stop` and the packets that
  /// belong to it. Returns false on failure; the caller must then take back the records after the
  /// checkpoint.
  bool run(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop = {});

  /// run() in steps, for a caller that decodes several runs at once: start(), then advance() until
  /// it no longer returns kReady. Between steps the caller may lend() the TNT bits to a lane and
  /// must take_back() the rest.
  enum class Progress : std::uint8_t {
    kReady,   ///< Full TNT packets follow.
    kDone,    ///< The end was reached.
    kFailed,  ///< Decoding failed.
  };
  void start(std::size_t offset, const PtPlace& place, std::optional<std::size_t> stop);
  Progress advance();
  /// Disables lanes from now on.
  void stay() { yields_ = false; }
  /// Returns the number of TNT packets decoded bit by bit, without those decoded in lanes.
  [[nodiscard]] std::size_t followed() const { return walk_.followed(); }
  void lend(FlowLane& lane);
  void take_back(FlowLane& lane);
  /// Decodes a lane's next packet if it is the TIP of the branch that execution is at. Otherwise
  /// returns false.
  bool tip_in(FlowLane& lane);

  [[nodiscard]] const Checkpoint& checkpoint() const { return checkpoint_; }
  /// Sets the checkpoint without decoding.
  void skip(const Checkpoint& checkpoint) { checkpoint_ = checkpoint; }
  /// Returns the offset of the packet at which decoding failed.
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] Stop stop() const { return {place_, walk_.held()}; }

 private:
  /// The contents of a PSB+ header, up to the PSBEND.
  struct Header {
    bool mode = false;
    std::optional<TraceeAddr> at;
  };

  bool follow_packets();
  [[nodiscard]] TntBytes tnt_bytes() const;
  bool yields();
  void give_up();
  bool is_aside(const PtPacket& packet);
  bool follow();
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
  [[nodiscard]] bool on() const { return walk_.on(); }
  /// True if no TNT bit or FUP is pending.
  [[nodiscard]] bool settled() const { return walk_.bits_used() && !fup_; }

  FlowGraph& graph_;
  PtErrata errata_;
  std::span<const std::uint8_t> packets_;
  RecordBatch& batch_;
  std::size_t at_ = 0;  ///< Offset of the next packet.
  std::optional<std::size_t> stop_;
  PtLastIp last_ip_;
  bool mode_known_ = false;        ///< The packets' execution mode matches the program's width.
  bool may_tma_ = false;           ///< A TSC arrived, and no TMA since then.
  bool stopped_ = false;           ///< Decoding stopped at stop_.
  PtPlace place_;                  ///< Valid while on() is false.
  std::optional<TraceeAddr> fup_;  ///< Address of a FUP that the next TIP or TIP.PGD completes.
  bool yields_ = false;            ///< TNT packets may be decoded in lanes.
  bool ready_ = false;             ///< Full TNT packets follow.
  std::size_t from_ = 0;           ///< Offset where this step began.
  Checkpoint checkpoint_;
  FlowWalk walk_;
};

}  // namespace backtrail::decoder
