// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Receives a thread's branch records.

#include <span>

#include "decoder/trace/record.hpp"
#include "decoder/trace/trace_mark.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::decoder {

/// Receives the records of one thread, oldest first, in batches of any size. A thread may have
/// several consumers, which are independent of each other.
class TraceConsumer {
 public:
  virtual ~TraceConsumer() = default;
  /// Receives records. The first record ever received is a gap with reason kStart.
  virtual void consume(std::span<const Record> records) = 0;
  /// Receives an event other than a branch, after all records received so far. The default ignores
  /// it.
  virtual void consume_mark(const TraceMark& mark) { (void)mark; }
  /// Receives recorded values, in order, whose places are known by the records received so far. The
  /// default ignores them.
  virtual void consume_facts(std::span<const ValueFact> facts) { (void)facts; }
};

}  // namespace backtrail::decoder
