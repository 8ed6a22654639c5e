#pragma once
/// @file
/// One thread's records, handed to everybody who listens.

#include <vector>

#include "decoder/trace/trace_consumer.hpp"

namespace backtrail::decoder {

/// Fans one producer's records out to any number of consumers, who do not know of each other.
/// Consumers may come and go at any time between two calls of consume(), not from within one.
class TraceHub : public TraceConsumer {
 public:
  /// Adds a consumer before the producer's first record; the producer's kStart reaches it. The
  /// consumer is borrowed until removed. Adding one twice has no effect.
  void add(TraceConsumer& consumer);
  /// Adds a consumer to a trace that runs already: it is told that recording began at `pc`, the
  /// thread's present pc.
  void add(TraceConsumer& consumer, TraceeAddr pc);
  /// Returns whether it was there.
  bool remove(TraceConsumer& consumer);
  [[nodiscard]] bool empty() const { return consumers_.empty(); }

  void consume(std::span<const Record> records) override;
  void consume_mark(const TraceMark& mark) override;

 private:
  [[nodiscard]] bool has(const TraceConsumer& consumer) const;

  std::vector<TraceConsumer*> consumers_;
};

}  // namespace backtrail::decoder
