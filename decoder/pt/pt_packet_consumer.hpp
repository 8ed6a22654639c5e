#pragma once
/// @file
/// Who takes Intel PT as the hardware wrote it.

#include <cstdint>
#include <span>

namespace backtrail::decoder {

class PtPacketConsumer {
 public:
  virtual ~PtPacketConsumer() = default;
  virtual void append(std::span<const std::uint8_t> packets) = 0;
  /// Bytes are missing here.
  virtual void hole() = 0;
  /// What came before does not belong to what follows.
  virtual void clear() = 0;
};

}  // namespace backtrail::decoder
