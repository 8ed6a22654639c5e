// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Collects records and facts, and hands many at a time to a consumer.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/trace/record.hpp"
#include "decoder/trace/trace_consumer.hpp"
#include "decoder/trace/value_fact.hpp"

namespace backtrail::tracee {

class RecordBatch {
 public:
  /// Borrows `sink`.
  explicit RecordBatch(decoder::TraceConsumer& sink);
  ~RecordBatch() { flush(); }
  RecordBatch(const RecordBatch&) = delete;
  RecordBatch& operator=(const RecordBatch&) = delete;

  /// Adds a record, which may be a pin (stream_pin.hpp) with at most one record ahead of it.
  void push(const decoder::Record& record);
  /// Adds a fact after record number `place` - 1, counted as pushed() does.
  void add(const decoder::ValueFact& fact, std::uint64_t place);
  /// Hands on all records and facts.
  void flush();
  /// Drops them.
  void forget() {
    pending_.clear();
    facts_.clear();
  }
  /// Number of records pushed, pins excluded.
  [[nodiscard]] std::uint64_t pushed() const { return pushed_; }

 private:
  void tell_pins();

  decoder::TraceConsumer& sink_;
  std::vector<decoder::Record> pending_;
  std::vector<decoder::ValueFact> facts_;  ///< Records are places.
  std::vector<decoder::Record> pins_;      ///< Pins to be told after the next record.
  std::uint64_t pushed_ = 0;
};

}  // namespace backtrail::tracee
