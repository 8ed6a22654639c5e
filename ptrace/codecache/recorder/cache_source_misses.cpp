// SPDX-License-Identifier: Apache-2.0
// Misses: threads without a translation to go to, stopped or with a request.

#include <utility>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/recorder/cache_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::translate::Slot;
using arch::cpu::translate::UntranslatableReason;
namespace translate = arch::cpu::translate;

/// At least the number of bytes that a checked superblock is made of.
constexpr std::uint64_t kMostCheckedBytes = 128;

}  // namespace

void CacheSource::note_untranslatable(UntranslatableReason why) {
  ++untranslatable_[static_cast<std::size_t>(why)];
  if (why == UntranslatableReason::kNone) space_->want_room();
}

void CacheSource::look_for_sections(Thread& thread) {
  if (const auto area = rseq_area(thread)) space_->look_for_section_of(*area);
}

std::optional<TraceeAddr> CacheSource::miss_target(TraceeAddr log) const {
  const auto entries = memory_->entries(log);
  if (entries.empty()) return std::nullopt;
  const auto exit = space_->code().exit(entries.back());
  if (!exit) return std::nullopt;
  if (exit->kind != translate::ExitKind::kIndirect) return exit->to;
  return TraceeAddr{memory_->read(Slot::kTarget)};
}

CacheSource::MissResult CacheSource::find_next(Thread& thread, TraceeAddr log) {
  const auto target = miss_target(log);
  if (!target || space_->disabled() || space_->room_wanted() || space_->gate_closed() ||
      !everybody_recorded() || !space_->refresh()) {
    return {};
  }
  // A thread inside a section does not ask: it stops (DispatchStub).
  if (thread.stopped()) look_for_sections(thread);
  const std::uint32_t exit_id = memory_->entries(log).back();
  const translate::Exit exit = *space_->code().exit(exit_id);
  if (exit.kind == translate::ExitKind::kUntranslatable) return {{}, exit.reason};
  const bool indirect = exit.kind == translate::ExitKind::kIndirect;
  const bool stale = exit.kind == translate::ExitKind::kStale;
  if (stale) process_.insns().invalidate(*target, *target + kMostCheckedBytes);
  cache::CodeCache& code = space_->code();
  const auto translation = stale      ? code.renew(exit_id)
                           : indirect ? code.ib_entry(*target)
                                      : code.translation(*target);
  if (const auto* reason = std::get_if<UntranslatableReason>(&translation)) return {{}, *reason};
  const TraceeAddr next = std::get<TraceeAddr>(translation);
  if (!indirect && !stale) code.link(exit_id, next);
  return {next, {}};
}

void CacheSource::count(const MissResult& result, TraceeAddr log) {
  // If an answer comes too late, the thread stops for the same miss.
  if (std::exchange(counted_at_, log) != log) ++misses_;
  if (result.why) note_untranslatable(*result.why);
}

StopVerdict CacheSource::miss(Thread& thread) {
  const StatisticsTimer timer{counts_ ? &sums_->serving : nullptr};
  const TraceeAddr log{memory_->read(Slot::kLog)};
  const MissResult found = find_next(thread, log);
  count(found, log);
  auto regs = thread.user_regs();
  if (!found.next || !regs) {
    if (!leave(thread)) return StopVerdict::kReport;
    if (found.why == UntranslatableReason::kFailedCall) make_call_again(thread);
    if (found.why == UntranslatableReason::kSystemCall && return_from_handler(thread)) {
      return StopVerdict::kResumed;
    }
    return step_natively(thread);
  }
  (*regs)[UserReg::kRax] = memory_->read(Slot::kRax);
  (*regs)[UserReg::kRcx] = memory_->read(Slot::kRcx);
  (*regs)[UserReg::kRdx] = memory_->read(Slot::kRdx);
  (*regs)[UserReg::kRsi] = memory_->read(Slot::kRsi);
  (*regs)[UserReg::kRdi] = memory_->read(Slot::kRdi);
  (*regs)[UserReg::kR11] = log.value();
  (*regs)[UserReg::kRip] = found.next->value();
  leave_syscall(*regs);
  if (!thread.set_user_regs(*regs)) return StopVerdict::kReport;
  // A thread that misses often misses again soon.
  may_ask_ = rseq_area_known();
  memory_->write(Slot::kRseqArea, rseq_area(thread).value_or(TraceeAddr{}).value());
  memory_->write(Slot::kServed, may_ask_ ? 1 : 0);
  (void)thread.run(RunRequest::kContinue, 0);
  return StopVerdict::kResumed;
}

void CacheSource::make_call_again(Thread& thread) {
  const auto from = thread.pc();
  if (!from || !write_guard_.repeat_call(thread, memory_->read(Slot::kArgument))) return;
  on_pc_written(*from, *from - arch::cpu::kSyscallInsnBytes);
}

bool CacheSource::serve(Thread& thread) {
  if (!may_ask_ || !in_cache_ || !memory_->take_request()) return false;
  const StatisticsTimer timer{counts_ ? &sums_->serving : nullptr};
  const TraceeAddr log{memory_->read(Slot::kLog)};
  const MissResult found = find_next(thread, log);
  if (found.next) {
    count(found, log);
    memory_->answer(*found.next);
  } else {
    memory_->refuse();  // it then stops, for the same reason
  }
  return true;
}

Result<std::size_t> CacheSource::translate_ahead(Thread& thread, std::uint64_t most_bytes) {
  if (process_.isa() != arch::Isa::kAmd64 || !set_up(thread)) {
    return fail(TraceErrc::kUnsupported, "translate ahead");
  }
  return space_->translate_ahead(most_bytes);
}

void CacheSource::let_wait() {
  may_ask_ = false;
  if (memory_) memory_->write(Slot::kServed, 0);
}

}  // namespace backtrail::tracee
