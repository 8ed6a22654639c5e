// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/record_batch.hpp"

#include <utility>

#include "decoder/trace/stream_pin.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::size_t kMostRecords = 512;

}  // namespace

RecordBatch::RecordBatch(decoder::TraceConsumer& sink) : sink_{sink} {
  pending_.reserve(kMostRecords);
}

void RecordBatch::push(const decoder::Record& record) {
  if (record.kind == decoder::kPinRecord) {
    pins_.push_back(record);
    if (record.payload == 0) tell_pins();
    return;
  }
  pending_.push_back(record);
  ++pushed_;
  if (!pins_.empty()) tell_pins();
  if (pending_.size() >= kMostRecords) flush();
}

void RecordBatch::tell_pins() {
  flush();
  for (const decoder::Record& pin : std::exchange(pins_, {})) {
    sink_.consume_mark(decoder::pin_mark(pin));
  }
}

void RecordBatch::add(const decoder::ValueFact& fact, std::uint64_t place) {
  facts_.push_back(fact);
  facts_.back().record = place;
}

void RecordBatch::flush() {
  // A consumer may read code and thereby call flush() again.
  std::vector<decoder::ValueFact> facts;
  facts.swap(facts_);
  for (decoder::ValueFact& fact : facts) fact.record = pushed_ - fact.record;
  if (!pending_.empty()) {
    std::vector<decoder::Record> batch;
    batch.swap(pending_);
    sink_.consume(batch);
    if (pending_.empty()) {
      batch.clear();
      pending_.swap(batch);
    }
  }
  if (!facts.empty()) sink_.consume_facts(facts);
}

}  // namespace backtrail::tracee
