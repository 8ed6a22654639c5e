// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Distributes one thread's records to all consumers.

#include <vector>

#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Passes the records of one producer to any number of consumers. Consumers may be added and
/// removed between calls of consume(), not within one.
class TraceHub : public TraceConsumer {
 public:
  /// Adds a consumer before the producer's first record, so that it receives the producer's kStart.
  /// Borrows the consumer until it is removed. Adding a consumer twice has no effect.
  void add(TraceConsumer& consumer);
  /// Adds a consumer to a trace that is already running. It receives a kStart gap at `pc`, the
  /// thread's current pc.
  void add(TraceConsumer& consumer, TraceeAddr pc);
  /// Returns true if the consumer had been added.
  bool remove(TraceConsumer& consumer);
  [[nodiscard]] bool empty() const { return consumers_.empty(); }

  void consume(std::span<const Record> records) override;
  void consume_mark(const TraceMark& mark) override;
  void consume_facts(std::span<const ValueFact> facts) override;

 private:
  [[nodiscard]] bool has(const TraceConsumer& consumer) const;

  std::vector<TraceConsumer*> consumers_;
};

}  // namespace backtrail::decoder
