#pragma once
/// @file
/// Who listens to a thread's branch records.

#include <span>

#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

/// Takes the records of one thread, oldest first, in batches of any size. Several consumers may
/// listen to one thread; each keeps what it wants and none can slow the others.
class TraceConsumer {
 public:
  virtual ~TraceConsumer() = default;
  /// The first record ever consumed is a gap of reason kStart.
  virtual void consume(std::span<const Record> records) = 0;
};

}  // namespace backtrail::decoder
