// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/executed_code.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "arch/base/value_kind.hpp"
#include "arch/insn.hpp"
#include "decoder/trace/block_walker.hpp"
#include "decoder/trace/code_granule.hpp"

namespace backtrail::decoder {
namespace {

/// After this many superblocks or stepped instructions everything is told anew, so that who keeps
/// the newest facts alone has what the newest records need.
constexpr std::uint64_t kAnewAfter = 64UL * 1024;

}  // namespace

void ExecutedCode::tell_byte_group(std::uint64_t granule, const Granule& bytes,
                                   std::uint64_t place) {
  Granule& known = told_[granule];
  const bool is_known = (known.mask & bytes.mask) == bytes.mask;
  if (is_known && ((known.value ^ bytes.value) & bytes.mask) == 0) return;
  known.value = (known.value & ~bytes.mask) | bytes.value;
  known.mask |= bytes.mask;
  ++version_;
  const auto first = static_cast<unsigned>(std::countr_zero(bytes.mask));
  const auto size = static_cast<unsigned>(std::popcount(bytes.mask)) / 8;
  facts_.push_back({.record = place,
                    .pc = TraceeAddr{granule + first / 8},
                    .value = bytes.value >> first,
                    .kind = static_cast<arch::ValueKind>(arch::kCodeKind + size)});
}

void ExecutedCode::tell(const BlockCode::Segment& segment, std::uint64_t place) {
  const std::uint64_t begin = segment.begin.value();
  const std::uint64_t end = begin + segment.bytes.size();
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t granule = granule_of(at);
    const std::uint64_t behind = std::min(end, granule + kCodeGranule);
    Granule bytes{.mask = granule_mask(granule, begin, end)};
    for (; at < behind; ++at) {
      bytes.value |= std::uint64_t{segment.bytes[at - begin]} << 8 * (at - granule);
    }
    tell_byte_group(granule, bytes, place);
  }
}

void ExecutedCode::drop(TraceeAddr begin, TraceeAddr end, std::uint64_t place) {
  const std::uint64_t first = begin.value();
  const std::uint64_t behind = end.value();
  bool was_told = false;
  for (auto at = told_.lower_bound(granule_of(first)); at != told_.end() && at->first < behind;) {
    const std::uint64_t mask = granule_mask(at->first, first, behind);
    was_told |= (at->second.mask & mask) != 0;
    at->second.mask &= ~mask;
    at = at->second.mask == 0 ? told_.erase(at) : std::next(at);
  }
  if (!was_told) return;
  ++version_;
  facts_.push_back(
      {.record = place, .pc = begin, .value = behind - first, .kind = arch::kCodeKind});
}

void ExecutedCode::drop_all(std::uint64_t place) {
  drop(TraceeAddr{0}, TraceeAddr{~std::uint64_t{0}}, place);
}

void ExecutedCode::drop_line(TraceeAddr begin, TraceeAddr end, std::uint64_t place) {
  if (told_.empty() || begin == end) return;
  if (begin < end && end - begin <= kMaxBlockBytes) return drop(begin, end, place);
  drop_all(place);
}

/// Goes through the lines that were executed, each after one more of the superblock's branches.
void ExecutedCode::see(const LoggedExit& exit, std::uint64_t place) {
  const auto branches = exit.block.branches.size();
  TraceeAddr begin = exit.block.start;
  for (std::size_t passed = 0; passed <= branches; ++passed) {
    const auto [from, to] =
        passed < branches ? exit.block.branch(passed) : TakenBranch{exit.from, exit.to};
    const bool branches_here = passed < branches || exit.kind != LoggedExitKind::kContinue;
    if (const auto segment = exits_.code().segment(exit.block_number, passed)) {
      tell(*segment, place + passed);
    } else {
      drop_line(begin, branches_here ? from + arch::kMaxInsnBytes : to, place + passed);
    }
    begin = to;
  }
}

void ExecutedCode::begin_anew(std::uint64_t place) {
  if (++since_all_ < kAnewAfter || !begins_line_) return;
  drop_all(place);
  since_all_ = 0;
}

void ExecutedCode::leave(const LoggedExit& exit, std::uint64_t place) {
  arrive(exit.block.start, place);
  covered_ = {};
  begin_anew(place);
  // A superblock whose code had changed executed nothing.
  if (exit.executed != 0) {
    if (exit.block_number >= seen_.size()) seen_.resize(exit.block_number + 1UL);
    Seen& seen = seen_[exit.block_number];
    if (seen.version != version_ || seen.instructions < exit.executed) {
      see(exit, place);
      seen = {version_, exit.executed};
    }
    begins_line_ = false;
  }
  at_.reset();
  if (exit.kind != LoggedExitKind::kIndirect) at_ = exit.to;
  begins_line_ |= exit.kind != LoggedExitKind::kContinue;
}

void ExecutedCode::execute(std::uint32_t block, std::size_t passed, std::optional<TraceeAddr> end,
                           std::uint64_t place) {
  const auto segment = exits_.code().segment(block, passed);
  if (segment) {
    tell(*segment, place);
    if (end) {
      at_ = end;
    } else {
      covered_ = {segment->begin, segment->begin + segment->bytes.size()};
    }
  } else if (end) {
    arrive(*end, place);
  }
  begins_line_ = false;
}

void ExecutedCode::step(TraceeAddr pc, std::span<const std::uint8_t> bytes, std::uint64_t place) {
  arrive(pc, place);
  begin_anew(place);
  tell({pc, bytes}, place);
  at_ = pc + bytes.size();
  covered_ = {pc, *at_};
  begins_line_ = false;
}

void ExecutedCode::arrive(TraceeAddr at, std::uint64_t place) {
  if (at_ && *at_ != at) {
    drop_line(*at_, at, place);
    begins_line_ = false;
  }
  at_ = at;
}

void ExecutedCode::take(const Record& record, std::uint64_t place) {
  if (record.kind == RecordKind::kBranch || record.kind == RecordKind::kAsync) {
    const bool is_branch = record.kind == RecordKind::kBranch;
    const auto [begin, end] = covered_;
    const bool is_covered = is_branch && record.from >= begin && record.from < end;
    const TraceeAddr behind = is_branch ? record.from + arch::kMaxInsnBytes : record.from;
    if (!is_covered) drop_line(at_.value_or(record.from), behind, place);
  } else {
    // The code that was executed before is not known.
    drop_all(place);
  }
  covered_ = {};
  at_ = record.to;
  begins_line_ = true;
}

void ExecutedCode::pause(std::uint64_t place) {
  if (at_) drop_line(*at_, *at_ + kMaxBlockBytes, place);
  expect_reader();
}

void ExecutedCode::expect_reader() {
  since_all_ += kAnewAfter / 4;
}

}  // namespace backtrail::decoder
