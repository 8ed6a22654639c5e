// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/call_stream.hpp"

#include <span>

#include "decoder/calls/call_follower.hpp"
#include "decoder/report/thread_calls.hpp"

namespace backtrail::decoder {

CallStream::CallStream(const ExportSource& source, std::uint32_t tid, PastCode& insns)
    : source_{source}, tid_{tid}, insns_{insns}, outline_{source.symbols} {
  CallFollower calls{insns_.at_end(), source_.symbols, outline_, insns_.of(tid_)};
  const auto take = [&](std::span<const Record> records, std::uint64_t end) {
    records_ += records.size();
    gaps_.see(records);
    calls.feed(records, end);
  };
  source_.archive.visit_numbered(tid_, source_.branches, take);
  calls.finish();
}

void CallStream::tell(const OrderedCalls::Tell& begins, const OrderedCalls::Tell& ends) const {
  OrderedCalls ordered{outline_, source_.symbols, begins, ends};
  CallFollower calls{insns_.at_end(), source_.symbols, ordered, insns_.of(tid_)};
  source_.archive.visit_numbered(
      tid_, source_.branches,
      [&](std::span<const Record> records, std::uint64_t end) { calls.feed(records, end); });
  calls.finish();
}

std::uint64_t CallStream::first() const {
  return first_record(source_.archive, tid_, records_);
}

}  // namespace backtrail::decoder
