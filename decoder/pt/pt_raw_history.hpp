// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps the last N bytes of Intel PT as the hardware wrote them, for a debugger that decodes them.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/pt/pt_packet_consumer.hpp"

namespace backtrail::decoder {

/// Keeps bytes in order, with a mark wherever some are missing, so that decoders do not join
/// unrelated packets. The mark is an OVF packet, or an invalid packet if the code was running on.
/// Begins at a PSB once something was dropped.
class PtRawHistory : public PtPacketConsumer {
 public:
  explicit PtRawHistory(std::uint64_t size_bytes) : size_bytes_{size_bytes} {}

  void append(std::span<const std::uint8_t> bytes) override;
  /// Reports missing bytes; removes a packet that was cut off.
  void hole() override;
  /// Drops everything, because it refers to other code (exec).
  void clear() override;

  /// Returns the bytes from a PSB on; empty if there is none yet.
  [[nodiscard]] std::vector<std::uint8_t> read_all();
  /// Returns true if bytes arrived since the last read_all().
  [[nodiscard]] bool changed() const { return unread_; }
  [[nodiscard]] std::uint64_t dropped_bytes() const { return dropped_; }

 private:
  std::uint64_t size_bytes_;
  std::vector<std::uint8_t> bytes_;
  bool hole_ = false;  ///< Not marked yet: the mark depends on what follows.
  bool unread_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace backtrail::decoder
