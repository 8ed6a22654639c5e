// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/trace_segment.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace backtrail::tracee {

TraceSegment::TraceSegment(CoreOutput& output, std::span<const CoreTrace> traces,
                           std::uint64_t offset)
    : output_{output}, traces_{traces}, offset_{offset} {}

Result<void> TraceSegment::put_away() {
  const std::uint64_t before = output_.written();
  const auto written = output_.write(offset_ + bytes_, waiting_);
  std::uint64_t there = written ? waiting_.size() : output_.written() - before;
  for (const Written& block : waiting_blocks_) {
    if (block.bytes <= there) {
      there -= block.bytes;
      bytes_ += block.bytes;
      written_.push_back(block);
    } else {
      there = 0;
    }
  }
  waiting_.clear();
  waiting_blocks_.clear();
  return written;
}

Result<void> TraceSegment::put(std::span<const std::uint8_t> block, const Written& what) {
  constexpr std::size_t kAtATime = std::size_t{256} << 10U;
  waiting_.insert(waiting_.end(), block.begin(), block.end());
  waiting_blocks_.push_back(what);
  return waiting_.size() < kAtATime ? Result<void>{} : put_away();
}

Result<void> TraceSegment::write_round(std::vector<std::size_t>& open) {
  CoreTraceBlock block;
  std::vector<std::size_t> rest;
  for (const std::size_t i : open) {
    block.bytes.clear();
    if (!traces_[i].newest || !traces_[i].newest(block)) continue;
    rest.push_back(i);
    BT_CHECKED(put(block.bytes, {.trace = i,
                                 .bytes = block.bytes.size(),
                                 .first = block.first,
                                 .records = block.records,
                                 .others = block.others}));
  }
  open = std::move(rest);
  return {};
}

Result<void> TraceSegment::write_all() {
  std::vector<std::size_t> open(traces_.size());
  std::iota(open.begin(), open.end(), std::size_t{0});
  BT_CHECKED(write_round(open));
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    const auto& extra = traces_[i].extra;
    if (!extra.empty()) BT_CHECKED(put(extra, {.trace = i, .bytes = extra.size()}));
  }
  while (!open.empty()) BT_CHECKED(write_round(open));
  return put_away();
}

Result<void> TraceSegment::write() {
  const auto written = write_all();
  if (written) return {};
  if (!is_out_of_space(written.error())) return written;
  return {};
}

std::uint64_t TraceSegment::records_without_room() const {
  std::uint64_t sum = 0;
  for (const CoreTrace& trace : traces_) sum += trace.held;
  for (const Written& block : written_) sum -= std::min(sum, block.records);
  return sum;
}

std::uint64_t TraceSegment::give_up(std::uint64_t bytes) {
  const std::uint64_t before = bytes_;
  while (!written_.empty() && before - bytes_ < bytes &&
         bytes_ - written_.back().bytes >= before / 2) {
    bytes_ -= written_.back().bytes;
    written_.pop_back();
  }
  return before - bytes_;
}

std::vector<decoder::TraceIndexEntry> TraceSegment::empty_index(std::span<const CoreTrace> traces) {
  std::vector<decoder::TraceIndexEntry> out;
  for (const CoreTrace& trace : traces) {
    decoder::TraceIndexEntry& entry = out.emplace_back();
    entry.tid = trace.tid;
    std::memcpy(entry.name, trace.name.data(), std::min(trace.name.size(), sizeof entry.name));
  }
  return out;
}

std::vector<decoder::TraceIndexEntry> TraceSegment::index() const {
  std::vector<decoder::TraceIndexEntry> out = empty_index(traces_);
  std::vector<std::uint64_t> kept_others(traces_.size());
  for (const Written& block : written_) {
    out[block.trace].records += block.records;
    kept_others[block.trace] += block.others;
  }
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    const CoreTrace& trace = traces_[i];
    out[i].lost = trace.end - std::min(trace.end, out[i].records);
    std::uint64_t count = trace.unnumbered;
    if (trace.others) count = *trace.others - std::min(*trace.others, kept_others[i]);
    const bool exact = trace.others && count <= decoder::kIndexCountMask;
    out[i].about_lost =
        decoder::kIndexNumbered | (exact ? decoder::kIndexExact : 0U) |
        static_cast<std::uint32_t>(std::min<std::uint64_t>(count, decoder::kIndexCountMask));
  }
  return out;
}

std::uint64_t TraceSegment::older_branches() const {
  std::uint64_t sum = 0;
  for (const decoder::TraceIndexEntry& entry : index()) {
    const std::uint64_t count = entry.about_lost & decoder::kIndexCountMask;
    sum += (entry.about_lost & decoder::kIndexExact) != 0 ? entry.lost - std::min(entry.lost, count)
                                                          : entry.lost + count;
  }
  return sum;
}

}  // namespace backtrail::tracee
