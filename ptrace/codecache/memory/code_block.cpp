// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/memory/code_block.hpp"

#include "arch/base/check.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::Exit;
using arch::cpu::translate::ExitKind;
using arch::cpu::translate::UntranslatableReason;

constexpr unsigned kLinkBits = 27;
constexpr std::uint32_t kLinkMask = (1U << kLinkBits) - 1;
constexpr std::uint32_t kReasonMask = 15;
constexpr std::uint32_t kStaleBit = 1U << 31U;
constexpr auto kLastReason = static_cast<std::uint32_t>(UntranslatableReason::kFailedCall);
static_assert(kLastReason <= kReasonMask && kCodeBytes <= kLinkMask);
static_assert((kReasonMask << kLinkBits & (kStaleBit | kLinkMask)) == 0);

}  // namespace

ExitPlace ExitPlace::of(std::uint64_t link, const Exit& exit) {
  BT_CHECK(link <= kLinkMask);
  ExitPlace place;
  place.bits_ = static_cast<std::uint32_t>(link) | static_cast<std::uint32_t>(exit.reason)
                                                       << kLinkBits;
  if (exit.kind == ExitKind::kStale) place.bits_ |= kStaleBit;
  return place;
}

std::uint32_t ExitPlace::link() const {
  return bits_ & kLinkMask;
}

UntranslatableReason ExitPlace::reason() const {
  return static_cast<UntranslatableReason>(bits_ >> kLinkBits & kReasonMask);
}

bool ExitPlace::is_sound() const {
  return (bits_ >> kLinkBits & kReasonMask) <= kLastReason;
}

ExitKind ExitPlace::kind(decoder::LoggedExitKind logged) const {
  switch (logged) {
    case decoder::LoggedExitKind::kDirect:
      return ExitKind::kDirect;
    case decoder::LoggedExitKind::kIndirect:
      return ExitKind::kIndirect;
    case decoder::LoggedExitKind::kContinue:
      break;
  }
  if ((bits_ & kStaleBit) != 0) return ExitKind::kStale;
  return reason() != UntranslatableReason::kNone ? ExitKind::kUntranslatable : ExitKind::kContinue;
}

decoder::LoggedExitKind logged_kind(ExitKind kind) {
  switch (kind) {
    case ExitKind::kDirect:
      return decoder::LoggedExitKind::kDirect;
    case ExitKind::kIndirect:
      return decoder::LoggedExitKind::kIndirect;
    default:
      return decoder::LoggedExitKind::kContinue;
  }
}

}  // namespace backtrail::tracee::cache
