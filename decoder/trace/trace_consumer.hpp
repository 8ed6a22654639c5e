#pragma once
/// @file
/// Who listens to a thread's branch records.

#include <span>

#include "decoder/trace/record.hpp"
#include "decoder/trace/trace_mark.hpp"

namespace backtrail::decoder {

/// Takes the records of one thread, oldest first, in batches of any size. Several consumers may
/// listen to one thread; each keeps what it wants and none can slow the others.
class TraceConsumer {
 public:
  virtual ~TraceConsumer() = default;
  /// The first record ever consumed is a gap of reason kStart.
  virtual void consume(std::span<const Record> records) = 0;
  /// Something that is no branch happened, after all records consumed so far. Who wants a clean
  /// trace leaves this alone.
  virtual void consume_mark(const TraceMark& mark) { (void)mark; }
};

}  // namespace backtrail::decoder
