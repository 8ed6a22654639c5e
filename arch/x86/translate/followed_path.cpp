// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/followed_path.hpp"

#include <algorithm>

namespace backtrail::arch::x86::translate {
namespace {

/// Loops of at most kMostUnrolled instructions are unrolled, up to kMostCopies iterations.
constexpr std::uint32_t kMostUnrolled = 32;
constexpr std::ptrdiff_t kMostCopies = 8;
/// All code of a superblock is within about this distance of its start.
constexpr std::uint64_t kFarthest = 1ULL << 30;

}  // namespace

FollowedPath::FollowedPath(const CodeSource& source, const TranslateOptions& options,
                           const BlockWriter& writer, const SideExits& side_exits)
    : source_{source},
      options_{options},
      writer_{writer},
      side_exits_{side_exits},
      pc_{writer.block().start},
      asks_undisturbed_{source.undisturbed != nullptr} {
  seen_.reserve(options.max_instructions);
}

SourceInsn FollowedPath::fetch(TraceeAddr pc) const {
  std::array<std::uint8_t, kMaxInsnBytes> bytes;  // NOLINT: filled if it is used
  std::span<const std::uint8_t> there;
  const std::uint64_t within = pc - view_at_;
  if (within < view_.size()) there = view_.subspan(within);
  if (there.size() < kMaxInsnBytes && source_.view) {
    there = view_ = source_.view(pc);
    view_at_ = pc;
  }
  if (there.size() < kMaxInsnBytes) {
    view_ = {};
    there = std::span{bytes}.first(source_.read(pc, bytes));
  }
  return source_.decoded != nullptr ? source_.decoded->decode(pc, there) : decode_source(pc, there);
}

SourceInsn FollowedPath::examine(TraceeAddr pc) const {
  SourceInsn insn = fetch(pc);
  if (insn.names && source_.named && source_.named(pc, *insn.names)) undisturbed_ = {};
  // The store that announces a critical section to the kernel belongs to it.
  if (source_.section_at && !is_undisturbed(insn.next()) && source_.section_at(insn.next())) {
    insn.kind = InsnClass::kUntranslatable;
    insn.reason = UntranslatableReason::kSection;
  }
  return insn;
}

bool FollowedPath::finds_undisturbed(TraceeAddr at) const {
  if (!asks_undisturbed_) return false;
  undisturbed_ = source_.undisturbed(at);
  asks_undisturbed_ = undisturbed_.first < undisturbed_.second;
  return undisturbed_.first <= at && at < undisturbed_.second;
}

bool FollowedPath::joins() const {
  return source_.joined_at && !options_.checked && writer_.block().ranges.back().second == pc_ &&
         source_.joined_at(pc_);
}

bool FollowedPath::is_left_to_another(const SourceInsn& insn) const {
  if (!options_.saves_memory) return false;
  return insn.kind == InsnClass::kCall || (source_.joined_at && source_.joined_at(insn.target));
}

bool FollowedPath::may_follow(TraceeAddr target) const {
  const bool is_near = target - writer_.block().start + kFarthest < 2 * kFarthest;
  return is_near && !options_.checked && !limits_reached() && !must_stop_before(target) &&
         std::count(seen_.begin(), seen_.end(), target) < copies_;
}

std::optional<TraceeAddr> FollowedPath::likely_target(TraceeAddr pc) const {
  return source_.likely_target ? source_.likely_target(pc) : std::nullopt;
}

bool FollowedPath::goes_likely(const SourceInsn& insn, TraceeAddr to) const {
  return likely_target(insn.pc) == to && may_follow(to);
}

bool FollowedPath::may_unroll(const SourceInsn& insn) const {
  if (options_.checked || insn.target > insn.pc || limits_reached() || copies_ >= kMostCopies)
    return false;
  const auto last = std::find(seen_.rbegin(), seen_.rend(), insn.target);
  if (last == seen_.rend() || must_stop_before(insn.target)) return false;
  const auto body = static_cast<std::uint32_t>(last - seen_.rbegin()) + 1;
  // The copy must fit: otherwise a superblock would be made for each start within the loop.
  return body <= kMostUnrolled && writer_.block().instructions + body < options_.max_instructions;
}

std::optional<TraceeAddr> FollowedPath::leave_call() {
  if (calls_.empty()) return std::nullopt;
  const TraceeAddr behind = calls_.back();
  calls_.pop_back();
  return behind;
}

}  // namespace backtrail::arch::x86::translate
