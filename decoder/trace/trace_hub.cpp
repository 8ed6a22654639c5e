// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/trace_hub.hpp"

#include <algorithm>

namespace backtrail::decoder {

bool TraceHub::has(const TraceConsumer& consumer) const {
  return std::find(consumers_.begin(), consumers_.end(), &consumer) != consumers_.end();
}

void TraceHub::add(TraceConsumer& consumer) {
  if (!has(consumer)) consumers_.push_back(&consumer);
}

void TraceHub::add(TraceConsumer& consumer, TraceeAddr pc) {
  if (has(consumer)) return;
  consumers_.push_back(&consumer);
  const Record start = gap(GapReason::kStart, TraceeAddr{}, pc);
  consumer.consume({&start, 1});
}

bool TraceHub::remove(TraceConsumer& consumer) {
  return std::erase(consumers_, &consumer) != 0;
}

void TraceHub::consume(std::span<const Record> records) {
  if (records.empty()) return;
  for (TraceConsumer* consumer : consumers_) consumer->consume(records);
}

void TraceHub::consume_mark(const TraceMark& mark) {
  for (TraceConsumer* consumer : consumers_) consumer->consume_mark(mark);
}

void TraceHub::consume_facts(std::span<const ValueFact> facts) {
  for (TraceConsumer* consumer : consumers_) consumer->consume_facts(facts);
}

}  // namespace backtrail::decoder
