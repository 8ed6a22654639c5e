// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Encodes branch records as Intel PT packets.
/// Source: SDM vol. 3, "Intel Processor Trace", packet definitions; libipt is the test oracle.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/pt/block_digest.hpp"
#include "decoder/pt/pt_packets.hpp"
#include "decoder/pt/return_stack.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// Encodes one thread's records as the packets that a decoder needs to follow the code: TNT for
/// conditional branches, TIP for indirect branches and far transfers, compressed returns where the
/// decoder's call stack predicts them, FUP+TIP for signals, FUP+TIP.PGD ... TIP.PGE for gaps, OVF
/// for losses. Needs the code that ran, to find branches not taken and system calls that returned.
/// Where that code cannot be followed the trace gets a gap.
///
/// As in hardware traces, a signal or an end inside a loop of direct jumps only appears in the
/// loop's first iteration, because no packet distinguishes iterations.
class PtEncoder {
 public:
  /// Borrows `insns`, which must outlive the encoder.
  explicit PtEncoder(InsnCache& insns);

  /// Appends the packets for `records` to `out`. The first record ever starts the trace with a PSB.
  /// Up to 5 TNT bits stay pending.
  void encode(std::span<const Record> records, std::vector<std::uint8_t>& out);
  /// Writes pending TNT bits.
  void flush(std::vector<std::uint8_t>& out);
  /// Writes pending bits and a PSB with the current state, so that decoding can begin here. Writes
  /// nothing before the first record.
  void synchronize(std::vector<std::uint8_t>& out);
  /// Appends what a reader needs to stop at `pc`: pending TNT bits, branches not taken up to `pc`,
  /// FUP and TIP.PGD. The encoder's state does not change. Writes nothing before the first record.
  void finish(TraceeAddr pc, std::vector<std::uint8_t>& out) const;
  /// Drops the trace so far; the next record starts a new one.
  void restart();

 private:
  void start(TraceeAddr at, PacketWriter& writer);
  void branch(const Record& record, PacketWriter& writer);
  void async(const Record& record, PacketWriter& writer);
  void gap(const Record& record, PacketWriter& writer);
  void resume(TraceeAddr at, PacketWriter& writer);

  BlockDigests digests_;
  PacketState packets_;
  ReturnStack returns_;
  TraceeAddr begin_;  ///< Where the incomplete block begins.
  bool started_ = false;
};

}  // namespace backtrail::decoder
