// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/branch_assembler.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "arch/base/bytes.hpp"
#include "decoder/perf/perf_abi.hpp"

namespace backtrail::decoder::perf {
namespace {

constexpr bool in_kernel(std::uint64_t address) {
  return (address >> 63U) != 0;
}

std::uint32_t saturated(std::uint64_t count) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
}

/// Returns true if `mov $15, %rax`, in either encoding, precedes the system call, as at the end of
/// a signal handler.
bool is_sigreturn(InsnCache& insns, TraceeAddr syscall) {
  constexpr std::array<std::uint8_t, 7> kLong{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0};
  constexpr std::array<std::uint8_t, 5> kShort{0xb8, 0x0f, 0, 0, 0};
  std::array<std::uint8_t, kLong.size()> before{};
  if (insns.code().read_code(syscall - before.size(), before) != before.size()) return false;
  return before == kLong || std::equal(kShort.begin(), kShort.end(), before.begin() + 2);
}

}  // namespace

Loss operator+(const Loss& a, const Loss& b) {
  const GapReason reason = a.reason == GapReason::kOverflow ? a.reason : b.reason;
  const bool a_unknown = a.count == 0;
  const bool b_unknown = b.count == 0;
  if (a_unknown && b_unknown) return {0, LossBound::kExact, reason};
  // A known count and an unknown one, or records and batches, add up to a lower bound.
  const bool same = !a_unknown && !b_unknown && a.bound == b.bound;
  return {a.count + b.count, same ? a.bound : LossBound::kAtLeast, reason};
}

BranchAssembler::BranchAssembler(InsnCache* insns, TraceConsumer& sink, Levels levels)
    : insns_{insns}, sink_{sink}, levels_{levels} {
  batch_.reserve(kBatch);
}

void BranchAssembler::start(TraceeAddr pc) {
  start_pc_ = pc == TraceeAddr{} ? std::nullopt : std::optional{pc};
  started_ = false;
  unusual_ = true;
  if (!start_pc_) return;
  started_ = true;
  unusual_ = loss_.has_value() || departure_.has_value();
  push(gap(GapReason::kStart, TraceeAddr{}, *start_pc_));
}

void BranchAssembler::raw_records(std::span<const std::uint8_t> bytes) {
  std::size_t count = bytes.size() / kBtsRecordBytes;
  for (const std::uint8_t* at = bytes.data(); count != 0; --count, at += kBtsRecordBytes)
    pair(load_le<std::uint64_t>(at), load_le<std::uint64_t>(at + 8));
}

void BranchAssembler::hand_on() {
  if (batch_.empty()) return;
  records_ += batch_.size();
  sink_.consume(batch_);
  batch_.clear();
}

void BranchAssembler::close_loss(TraceeAddr to) {
  if (!started_) {
    // Losses before the first record are not part of the trace.
    push(gap(GapReason::kStart, TraceeAddr{}, to));
    started_ = true;
    loss_.reset();
    return;
  }
  if (!loss_) return;
  push(gap(loss_->reason, TraceeAddr{}, to, saturated(loss_->count), loss_->bound));
  ++gaps_;
  loss_.reset();
}

void BranchAssembler::unusual_pair(std::uint64_t from, std::uint64_t to) {
  if (levels_ == Levels::kAll && from != 0) {
    close_loss(TraceeAddr{from});
    unusual_ = false;
    push(branch(TraceeAddr{from}, TraceeAddr{to}));
    return;
  }
  if (from == 0 || (in_kernel(from) && in_kernel(to))) {
    ++dropped_;
    return;
  }
  if (in_kernel(from)) {
    came_back(to);
    return;
  }
  close_loss(TraceeAddr{from});
  departure_.reset();  // The thread is in user space again, though its return was not seen.
  if (in_kernel(to)) {
    left(from);
    return;
  }
  unusual_ = false;
  push(branch(TraceeAddr{from}, TraceeAddr{to}));
}

BranchAssembler::Departure BranchAssembler::departure(TraceeAddr from) const {
  Departure out{from, MarkKind::kLeftAsync, from, false};
  if (insns_ == nullptr) return out;
  const arch::InsnFacts& insn = insns_->at(from);
  if (!insn.known()) return out;
  if (insn.kind == arch::InsnKind::kSystemCall) {
    out.kind = MarkKind::kLeftSystemCall;
    out.sigreturn = is_sigreturn(*insns_, from);
  } else if (insn.kind == arch::InsnKind::kFarTransfer) {
    out.kind = MarkKind::kLeftSoftware;
  } else {
    return out;
  }
  out.behind = from + insn.length;
  return out;
}

void BranchAssembler::left(std::uint64_t from) {
  departure_ = departure(TraceeAddr{from});
  unusual_ = true;
}

void BranchAssembler::came_back(std::uint64_t to) {
  const TraceeAddr target{to};
  // After an interrupt the same instruction runs next, so it leaves no mark.
  const bool interrupt =
      departure_ && departure_->kind == MarkKind::kLeftAsync && departure_->from == target;
  if (departure_ && !interrupt) mark({.kind = departure_->kind, .at = departure_->from});
  if (!departure_) {
    // The place where it left is unknown: the kernel's part of a signal, or something was lost.
    if (!started_ || loss_) {
      close_loss(target);
    } else {
      push(gap(GapReason::kNotRecorded, TraceeAddr{}, target));
      ++gaps_;
    }
  } else if (departure_->sigreturn) {
    push(branch(departure_->from, target));
  } else if (target != departure_->behind && target != departure_->from) {
    push(async_transfer(departure_->behind, target));
  }
  departure_.reset();
  unusual_ = false;
  if (!interrupt) mark({.kind = MarkKind::kCameBack, .at = target});
}

void BranchAssembler::lost(const Loss& loss) {
  loss_ = loss_ ? *loss_ + loss : loss;
  departure_.reset();
  unusual_ = true;
}

void BranchAssembler::mark(const TraceMark& mark) {
  hand_on();
  sink_.consume_mark(mark);
}

void BranchAssembler::insert(const Record& record) {
  loss_.reset();  // This record replaces the loss's gap.
  departure_.reset();
  started_ = true;
  unusual_ = false;
  push(record);
  hand_on();
}

void BranchAssembler::flush(std::optional<TraceeAddr> pc) {
  if (pc && (loss_ || !started_)) {
    close_loss(*pc);
    unusual_ = departure_.has_value();
  }
  hand_on();
}

}  // namespace backtrail::decoder::perf
