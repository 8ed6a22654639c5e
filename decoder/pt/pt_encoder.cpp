// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/pt_encoder.hpp"

namespace backtrail::decoder {
namespace {

/// Digests of a large program do not fit in the CPU's caches. Prefetching them this many records
/// ahead doubles the speed.
constexpr std::size_t kLookAhead = 8;

void write_resumptions(std::span<const Resumption> resumptions, PacketWriter& writer) {
  for (const Resumption& resumption : resumptions) {
    writer.not_taken(resumption.not_taken);
    writer.tip(resumption.at);
  }
}

/// Makes a decoder stop before the instruction at `at`.
void stop_at(TraceeAddr at, PacketWriter& writer) {
  writer.fup(at);
  writer.tip_pgd();
}

/// Follows the code from `begin` up to `stop`. On failure, makes a decoder stop before the
/// instruction that could not be followed, or at `begin` if the code cannot be what ran. Returns
/// true on arrival.
bool write_passage(InsnCache& insns, TraceeAddr begin, TraceeAddr stop, PacketWriter& writer) {
  const Passage passage = walk_passage(insns, begin, stop);
  if (passage.walk.end == WalkEnd::kDiverged) {
    stop_at(begin, writer);
    return false;
  }
  write_resumptions(passage.resumptions, writer);
  writer.not_taken(passage.not_taken);
  if (passage.walk.reached()) return true;
  stop_at(passage.walk.at, writer);
  return false;
}

}  // namespace

PtEncoder::PtEncoder(InsnCache& insns) : digests_{insns} {}

void PtEncoder::encode(std::span<const Record> records, std::vector<std::uint8_t>& out) {
  digests_.refresh();
  PacketWriter writer{packets_, out};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (records.size() - i > kLookAhead) {
      digests_.prefetch(records[i + kLookAhead - 1].to, records[i + kLookAhead].from);
    }
    if (!started_) {
      start(record.to, writer);
    } else if (record.kind == RecordKind::kBranch) {
      branch(record, writer);
    } else if (record.kind == RecordKind::kAsync) {
      async(record, writer);
    } else {
      gap(record, writer);
    }
    begin_ = record.to;
  }
}

void PtEncoder::start(TraceeAddr at, PacketWriter& writer) {
  // Without an address, this PSB states that tracing is off.
  started_ = true;
  writer.psb();
  writer.psbend();
  resume(at, writer);
}

/// Resumes tracing at `at` after a stop.
void PtEncoder::resume(TraceeAddr at, PacketWriter& writer) {
  writer.mode_exec(digests_.insns().code().isa());
  writer.tip_pge(at);
  returns_.clear();
}

void PtEncoder::branch(const Record& record, PacketWriter& writer) {
  const BlockDigest* const block = digests_.find(begin_, record.from);
  if (block == nullptr) {
    if (write_passage(digests_.insns(), begin_, record.from, writer)) stop_at(record.from, writer);
    return resume(record.to, writer);
  }
  if (block->resumptions != 0) write_resumptions(digests_.resumptions(*block), writer);
  writer.not_taken(block->not_taken);
  switch (block->exit) {
    case BlockExit::kConditional:
      if (record.to == block->target) return writer.taken();
      if (record.to == block->behind()) return writer.not_taken(1);
      break;
    case BlockExit::kDirect:
    case BlockExit::kNextCall:
      if (record.to == block->target) return;
      break;
    case BlockExit::kDirectCall:
      if (record.to != block->target) break;
      return returns_.push(block->behind());
    case BlockExit::kIndirect:
      return writer.tip(record.to);
    case BlockExit::kIndirectCall:
      returns_.push(block->behind());
      return writer.tip(record.to);
    case BlockExit::kReturn:
      if (returns_.pop_if(record.to)) return writer.taken();
      // Decoders differ in whether they pop here.
      returns_.clear();
      return writer.tip(record.to);
    case BlockExit::kNone:
      // The instruction is no branch but was left: a transaction aborted.
      writer.fup(record.from);
      return writer.tip(record.to);
  }
  // A direct branch did not reach its target, so the code is not what ran.
  stop_at(record.from, writer);
  resume(record.to, writer);
}

void PtEncoder::async(const Record& record, PacketWriter& writer) {
  if (!write_passage(digests_.insns(), begin_, record.from, writer)) {
    return resume(record.to, writer);
  }
  writer.fup(record.from);
  writer.tip(record.to);
}

void PtEncoder::gap(const Record& record, PacketWriter& writer) {
  const bool from_known = record.from != TraceeAddr{};
  const TraceeAddr stop = from_known ? record.from : begin_;
  if (write_passage(digests_.insns(), begin_, stop, writer)) stop_at(stop, writer);
  if (record.reason == GapReason::kExec) return start(record.to, writer);
  // A decoder sees no gap in a stop and a start at the same place.
  const bool seamless = stop == record.to && record.reason != GapReason::kPcChanged;
  if (from_known && !seamless && record.reason != GapReason::kOverflow) {
    return resume(record.to, writer);
  }
  writer.ovf();
  writer.fup(record.to);
  returns_.clear();
}

void PtEncoder::flush(std::vector<std::uint8_t>& out) {
  PacketWriter{packets_, out}.flush();
}

void PtEncoder::synchronize(std::vector<std::uint8_t>& out) {
  if (!started_) return;
  PacketWriter writer{packets_, out};
  writer.psb();
  writer.mode_exec(digests_.insns().code().isa());
  writer.fup(begin_);
  writer.psbend();
  returns_.clear();
}

void PtEncoder::finish(TraceeAddr pc, std::vector<std::uint8_t>& out) const {
  if (!started_) return;
  PacketState packets = packets_;
  PacketWriter writer{packets, out};
  if (write_passage(digests_.insns(), begin_, pc, writer)) stop_at(pc, writer);
}

void PtEncoder::restart() {
  packets_ = {};
  returns_.clear();
  started_ = false;
}

}  // namespace backtrail::decoder
