// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Receives Intel PT as the hardware wrote it.

#include <cstdint>
#include <span>

namespace backtrail::decoder {

class PtPacketConsumer {
 public:
  virtual ~PtPacketConsumer() = default;
  virtual void append(std::span<const std::uint8_t> packets) = 0;
  /// Reports that bytes are missing here.
  virtual void hole() = 0;
  /// Separates what came before from what follows.
  virtual void clear() = 0;
};

}  // namespace backtrail::decoder
