#pragma once
/// @file
/// The last N bytes of Intel PT as the hardware wrote them, for a debugger that decodes them.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/pt/pt_packet_consumer.hpp"

namespace backtrail::decoder {

/// Bytes in order, with a mark wherever some are missing, so that no decoder joins what does not
/// belong together: an OVF packet, or bytes that are none where the code was running on. Starts at
/// a PSB once something was dropped.
class PtRawHistory : public PtPacketConsumer {
 public:
  explicit PtRawHistory(std::uint64_t size_bytes) : size_bytes_{size_bytes} {}

  void append(std::span<const std::uint8_t> bytes) override;
  /// Bytes are missing here. A packet that was cut off is taken away.
  void hole() override;
  /// Everything before means other code (exec).
  void clear() override;

  /// From a PSB on; empty when there is none yet.
  [[nodiscard]] std::vector<std::uint8_t> read_all();
  /// Bytes came since the last read_all().
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
