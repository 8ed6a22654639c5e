// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/cache_source.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/recorder/file_watch.hpp"
#include "ptrace/codecache/recorder/forced_signals.hpp"
#include "ptrace/codecache/recorder/misses.hpp"
#include "ptrace/codecache/recorder/native_state.hpp"
#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/codecache/syscalls/call_filters.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::UserReg;
using arch::cpu::translate::Slot;
using arch::cpu::translate::UntranslatableReason;
namespace translate = arch::cpu::translate;

/// Returns true if the thread can make system calls for the server from this stop.
bool is_plain(Thread& thread) {
  const WaitStatus& status = thread.status();
  return status.is_interrupt_stop() ||
         (status.kind == WaitKind::kStopped && status.signal == SIGTRAP &&
          thread.trap_cause() == TrapCause::kStep);
}

bool stands_at_handler(Thread& thread) {
  const WaitStatus& status = thread.status();
  return status.kind == WaitKind::kStopped && status.signal == SIGTRAP &&
         thread.trap_cause() == TrapCause::kHandlerEntry;
}

}  // namespace

CacheSource::CacheSource(Process& process, decoder::TraceConsumer& sink,
                         std::uint64_t history_bytes, const TraceConfig& config)
    : StepSource{process, sink, std::make_unique<cache::FileWatch>()},
      process_{process},
      drops_undecoded_{config.log_bytes != 0},
      sums_{config.statistics ? config.statistics : std::make_shared<SourceStatistics>()},
      measures_{config.statistics != nullptr},
      persistent_store_{config.kept},
      log_{sink,
           {.history_bytes = history_bytes,
            .keeps_all = config.every_record,
            .statistics = config.statistics.get()}},
      calls_{process, config.kept != nullptr, [this](const std::string& why) { disable(why); }},
      write_guard_{process} {}

CacheSource::~CacheSource() {
  if (auto& logger = log::ptrace(); logger.writes(log::Level::kDebug)) {
    logger.debug("pid={}: {}", process_.pid(), statistics());
  }
  write_guard_.end_call();
  calls_.release();
  write_guard_.end_step(nullptr);
  drop_space();
  add_statistics();
}

void CacheSource::add_statistics() const {
  sums_->branches += log_.counts().branches;
  sums_->instructions += log_.counts().instructions + instructions_stepped();
  sums_->log_bytes += log_.entries_seen() * sizeof(std::uint32_t);
  sums_->full_logs += log_.full_logs();
  sums_->stepped += instructions_stepped();
  counts_.add_to(*sums_);
  if (!why_stepping_.empty()) ++sums_->fallbacks["all of a thread: " + why_stepping_];
}

std::string CacheSource::statistics() const {
  std::string text = fmt::format(
      "cache: {} exits logged, {} entries, {} misses, {} full logs, {} instructions stepped",
      log_.entries_seen(), counts_.entries(), counts_.misses(), log_.full_logs(),
      counts_.native_steps());
  if (space_) {
    text += cache::describe(space_->code());
    if (const std::size_t pages = space_->protection().pages().size(); pages != 0) {
      text += fmt::format("; {} write-protected pages", pages);
    }
  }
  text += counts_.untranslatable();
  if (!why_stepping_.empty()) text += "; stepping: " + why_stepping_;
  if (process_.isa() != arch::Isa::kAmd64) text += "; stepping: a 32-bit program";
  if (space_ && space_->disabled()) text += "; stepping: " + space_->why_disabled();
  return text;
}

void CacheSource::drop_space() {
  if (log_.is_open() && !drops_undecoded_) flush();
  log_.close();
  if (space_) {
    see_opens(false);
    space_->threads().give_back(slot_);
  }
  memory_.reset();
  space_.reset();
  in_cache_ = false;
}

void CacheSource::see_opens(bool on) {
  if (std::exchange(sees_opens_, on) != on) space_->see_opens(on);
}

void CacheSource::disable_thread(std::string why) {
  if (!why_stepping_.empty()) return;
  log::ptrace().info("pid={}: stepping from here on: {}", process_.pid(), why);
  why_stepping_ = std::move(why);
}

void CacheSource::disable(const std::string& why) {
  cache::CacheSpace& space = *process_.cache_space;
  if (space.disabled()) return;
  log::ptrace().info("pid={}: stepping from here on: {}", process_.pid(), why);
  space.disable(why);
  ++sums_->fallbacks["all of a process: " + why];
}

bool CacheSource::set_up(Thread& thread) {
  if (space_) return true;
  const StatisticsTimer timer{measures_ ? &sums_->setting_up : nullptr};
  const auto failed = [&](const Error& error) {
    // A thread that is gone needs no source; other errors will not go away.
    if (!error.is(TraceErrc::kTraceeGone)) disable_thread(error.message());
    return false;
  };
  if (auto why = cache::why_not_behind(process_.filters); !why.empty()) {
    disable_thread(std::move(why));
    return false;
  }
  auto space = cache::CacheSpace::of(thread, sums_, persistent_store_);
  if (!space) return failed(space.error());
  const auto slot = (*space)->threads().take(thread);
  if (!slot) return failed(slot.error());
  space_ = std::move(*space);
  slot_ = *slot;
  if (&space_->process() != &process_) space_->stop_at_breakpoints_of(process_);
  memory_ = space_->memory().thread(slot_);
  log_.open(*space_, slot_, *memory_);
  return true;
}

bool CacheSource::everybody_recorded() const {
  return std::all_of(process_.threads().begin(), process_.threads().end(), [](const auto& thread) {
    return thread->control().zombie || thread->control().starting ||
           (thread->source() != nullptr && thread->source()->kind() == SourceKind::kCache);
  });
}

bool CacheSource::may_enter(Thread& thread, const arch::cpu::UserRegs& regs) const {
  if (!why_stepping_.empty() || process_.isa() != arch::Isa::kAmd64) return false;
  if (!cache::can_run_translated(regs)) return false;
  const WaitStatus& status = thread.status();
  const bool between = status.kind == WaitKind::kStopped || status.is_event(PTRACE_EVENT_STOP);
  if (!between || status.is_group_stop() || thread.syscall_will_restart()) return false;
  if (process_.lifted_for_vfork || !everybody_recorded()) return false;
  const auto& space = process_.cache_space;
  return (space_ || is_plain(thread)) && !(space && space->disabled());
}

bool CacheSource::enter(Thread& thread) {
  const auto before = thread.user_regs();
  if (!before || !may_enter(thread, *before)) return false;
  if (!set_up(thread) || space_->gate_closed() || !space_->refresh()) return false;
  if (is_plain(thread) && !space_->segv_action().learn(thread, space_->memory().thread(slot_)))
    return false;
  if (space_->room_wanted() && !space_->make_room()) {
    evict();
    return false;
  }
  // The kernel has cleared the name of a sequence where it laid down a handler's frame.
  if (!stands_at_handler(thread)) look_for_sections(thread);
  TrapGuard::learn_ignored(thread);
  const auto translation = space_->code().translation(before->pc());
  if (const auto* reason = std::get_if<UntranslatableReason>(&translation)) {
    counts_.note_untranslatable(*reason);
    want_room_for(*reason);
    return false;
  }
  const auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return false;
  memory_->write(Slot::kSegvBlocked, *mask & kSegvBit);
  note_slice(*memory_, slice(), process_.address_limit.counts_ours());
  const TraceeAddr to = std::get<TraceeAddr>(translation);
  if (!thread.set_user_regs(cache::translated_state(*before, *memory_, to))) return false;
  let_wait();
  set_inside(true);
  counts_.note_entry();
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

Result<void> CacheSource::resume(Thread& thread, const SourceResume& how) {
  // While the affinity is narrowed no file may show it.
  if (space_) see_opens(thread.cpu_pin()->active());
  if (!how.step && !how.syscalls && how.signal == 0 && enter(thread)) {
    note_resumed(how);
    return {};
  }
  return go_natively(thread, how);
}

Result<void> CacheSource::go_natively(Thread& thread, const SourceResume& how) {
  switch (calls_.prepare(thread, how)) {
    case cache::CallInterceptor::Next::kGo:
      break;
    case cache::CallInterceptor::Next::kGoElsewhere:
      if (const auto pc = thread.pc()) moved_to(*pc);
      break;
    case cache::CallInterceptor::Next::kWait:
      return let_others_go(thread, how);
    case cache::CallInterceptor::Next::kRequest:
      return stop_again(thread, how);
  }
  begin_native(thread, how);
  if (how.signal != 0 && how.signal != SIGSTOP) write_guard_.begin_delivery(thread);
  if (calls_.has_to_wait(thread, how)) return let_others_go(thread, how);
  counts_.note_native_step();
  return StepSource::resume(thread, how);
}

void CacheSource::begin_native(Thread& thread, const SourceResume& how) {
  if (!process_.cache_space && !persistent_store_ && !process_.address_limit.program()) return;
  if (process_.cache_space) write_guard_.begin_step(thread);
  const auto regs = thread.user_regs();
  if (!regs || !arch::cpu::is_syscall(process_.insn_bytes(regs->pc()))) return;
  if (process_.cache_space) write_guard_.begin_call(thread, *regs);
  calls_.begin(thread, *regs, how, memory_ ? &*memory_ : nullptr);
}

Result<void> CacheSource::let_others_go(Thread& thread, const SourceResume& how) {
  evict();
  return stop_again(thread, how);
}

Result<void> CacheSource::stop_again(Thread& thread, const SourceResume& how) {
  BT_CHECKED(thread.interrupt());
  note_resumed(how);
  return thread.run(RunRequest::kContinue, 0);
}

StopVerdict CacheSource::on_stop(Thread& thread, const WaitStatus& status) {
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    drop_space();  // its memory went with the old program
    write_guard_.forget();
    calls_.forget();
    handler_return_.forget();
    cache::leave_space(process_);
    if (process_.isa() != arch::Isa::kAmd64) (void)process_.address_limit.lower(process_.pid());
    // The moves must not be refused halfway.
    if (persistent_store_ && process_.filters.empty()) cache::fix_addresses(thread);
    return StepSource::on_stop(thread, status);
  }
  if (in_cache_) return cache_stop(thread, status);
  (void)thread.user_regs();  // all of them are wanted in a moment: one request instead of two
  write_guard_.end_call();
  calls_.end(thread);
  end_call(thread);
  if (const auto verdict = write_hit(thread, status)) return *verdict;
  write_guard_.end_step(&thread);
  if (calls_.takes_request(status)) return StopVerdict::kTraceRequest;
  if (calls_.repeats(thread, status)) {
    (void)resume(thread, last_resume());
    return StopVerdict::kResumed;
  }
  return StepSource::on_stop(thread, status);
}

std::optional<StopVerdict> CacheSource::write_hit(Thread& thread, const WaitStatus& status) {
  if (!write_guard_.may_be_hit(status)) return std::nullopt;
  const auto blocked =
      in_cache_ ? std::optional{forced_signals().segv_blocked(thread)} : std::nullopt;
  const auto hit = write_guard_.hit(thread, blocked);
  if (!hit) return std::nullopt;
  if (in_cache_ && !leave(thread)) return StopVerdict::kReport;
  slice().end(thread);
  if (!set_up(thread) || !write_guard_.let_write(thread, *hit, slot_)) return std::nullopt;
  counts_.note_native_step();
  (void)StepSource::resume(thread, last_resume());
  return StopVerdict::kResumed;
}

void CacheSource::set_inside(bool inside) {
  in_cache_ = inside;
  // The thread, or an earlier owner of the slot, may have been stopped while it waited.
  memory_->drop_request();
  if (!inside) let_wait();
  space_->threads().set_inside(slot_, inside);
}

void CacheSource::evict() {
  for (const auto& other : process_.threads()) {
    if (!other->stopped() && other->source() != nullptr) (void)other->interrupt();
  }
}

void CacheSource::ran_unseen() {
  if (process_.cache_space) process_.cache_space->mappings_changed();
}

StopVerdict CacheSource::cache_stop(Thread& thread, const WaitStatus& status) {
  (void)thread.user_regs();  // all of them are wanted in a moment: one request instead of two
  const auto pc = thread.pc();
  if (!pc) return StopVerdict::kReport;  // the thread is gone
  if (handler_return_.in_progress() && !has_returned(thread, *pc)) return on_stop(thread, status);
  const cache::ForcedSignals forced = forced_signals();
  if (*pc == space_->code().miss_stop()) {
    const bool taken = forced.take_trap(thread);
    if (taken && status.kind == WaitKind::kStopped && status.signal == SIGTRAP) return miss(thread);
  }
  if (status.kind == WaitKind::kStopped && status.signal == SIGSEGV) {
    if (*pc == space_->code().miss_fault()) {
      if (forced.fault_at(thread) && forced.take_fault(thread)) return miss(thread);
    } else if (forced.is_full_log(thread) && guard_hit(thread)) {
      return StopVerdict::kResumed;
    }
  }
  if (const auto verdict = write_hit(thread, status)) return *verdict;
  if (!in_cache_) return StopVerdict::kReport;
  auto fault = cache::raised_by_insn(thread);
  if (!leave(thread)) return StopVerdict::kReport;
  // In other cases the instruction raises its signal again at its native address, with all state as
  // it must be.
  const bool certain = at_insn_ && !process_.address_limit.counts_ours();
  if (fault && !(certain && cache::raised_by_program(thread, *fault))) return step_natively(thread);
  slice().end(thread);
  TrapGuard::repair(thread);
  return StopVerdict::kReport;
}

StopVerdict CacheSource::step_natively(Thread& thread) {
  (void)go_natively(thread, SourceResume{});
  return StopVerdict::kResumed;
}

bool CacheSource::guard_hit(Thread& thread) {
  const auto full = memory_->entries(memory_->log_end());
  const bool stays = log_.is_busy();
  if (everybody_recorded()) space_->look_for_code_to_protect(thread, full);
  if (!stays) space_->learn_from_log(full);
  auto regs = thread.user_regs();
  if (!regs || !forced_signals().take_fault(thread)) return false;
  counts_.note_full_log();
  take_log(memory_->log_end());
  log_.renew(thread);
  (*regs)[UserReg::kR11] = memory_->log_begin().value();
  if (!thread.set_user_regs(*regs)) return false;
  (void)thread.run(RunRequest::kContinue, 0);
  if (stays) {
    // While the thread runs on: this segment is not written again for a while.
    space_->learn_from_log(full);
    log_.prepare_next();
  }
  if (log_.keeps_all()) hand_on();
  return true;
}

void CacheSource::push(const decoder::Record& record) {
  if (record.kind == decoder::RecordKind::kBranch) counts_.note_stepped_branch();
  if (!log_.is_open()) return StepSource::push(record);
  if (log_.may_drain()) StepSource::flush();
  log_.add_record(record);
}

void CacheSource::take_log(TraceeAddr log) {
  note_returned();
  if (log_.may_drain()) StepSource::flush();
  log_.take(log);
}

Result<void> CacheSource::stream(std::uint64_t /*size_bytes*/) {
  log_.stream(!in_cache_);
  return {};
}

void CacheSource::pin(std::uint64_t id, std::uint32_t ahead) {
  // `ahead` counts from the beginning of the log.
  const auto taken = static_cast<std::uint32_t>(log_.taken());
  StepSource::pin(id, ahead - std::min(ahead, taken));
}

void CacheSource::hand_on() {
  StepSource::flush();
  log_.drain();
}

std::uint64_t CacheSource::keep_newest(std::uint64_t branches) {
  return log_.keep_newest(branches);
}

void CacheSource::forget() {
  StepSource::forget();
  log_.clear();
}

std::unique_ptr<decoder::CacheLog> CacheSource::take_log_of_ended() {
  if (!log_.is_open() || in_cache_ || log_.streams()) return nullptr;
  StepSource::flush();
  return log_.release();
}

void CacheSource::flush() {
  if (const std::size_t fresh = in_cache_ ? log_.new_entries() : 0; fresh != 0) {
    note_returned();
    StepSource::flush();
    log_.take_written(fresh);
  }
  hand_on();
}

void CacheSource::on_breakpoint(TraceeAddr address) {
  if (space_) space_->code().split_at(address);
}

void CacheSource::on_code_written(TraceeAddr begin, TraceeAddr end) {
  StepSource::on_code_written(begin, end);
  if (space_) space_->code_written(begin, end);
}

void CacheSource::detach(Thread& thread) {
  write_guard_.end_call();
  calls_.release();
  write_guard_.end_step(&thread);
  StepSource::detach(thread);
  drop_space();
  const auto& space = process_.cache_space;
  // No other code handles this thread's write faults.
  if (space) (void)space->protection().unprotect_all(thread);
  // A vfork's child runs on in memory in which its parent's threads run translated code.
  if (space && &space->process() != &process_) space->protection().keep_unprotected(true);
  if (!space || space->threads().used()) return;
  cache::remove_memory(thread, *space);
  cache::leave_space(process_);
}

Result<void> CacheSource::leave(Thread& thread) {
  BT_TRY(const arch::cpu::UserRegs stopped_at, thread.user_regs());
  set_inside(false);
  const auto place = space_->code().locate(stopped_at.pc());
  if (!place) {
    log::ptrace().error(
        "tid={}: left translated code at {} by itself (r10={:#x} r11={:#x} rsp={}); a signal from "
        "here is the recorder's fault, not the program's",
        thread.tid(), stopped_at.pc(), stopped_at[UserReg::kR10], stopped_at[UserReg::kR11],
        stopped_at.sp());
    disable_thread("the thread left translated code by itself");
  }
  translate::ProgramState native =
      cache::program_state(space_->code(), *memory_, place, stopped_at);
  at_insn_ = cache::is_before_insn(place, native);
  const auto taken_back =
      cache::take_back_refused_branch(process_, space_->code(), *memory_, native);
  take_log(native.log);
  if (taken_back) {
    log_.add_passed(taken_back->block, taken_back->block.branches.size());
  } else if (place && (native.flags & translate::kCommitted) == 0) {
    log_.add_passed(place->logged, place->map_entry.passed);
  } else {
    log_.add_arrival(native.pc);
  }
  native.regs[UserReg::kRip] = native.pc.value();
  native.regs[UserReg::kGsBase] = 0;
  // A call that will be repeated is not complete yet.
  const bool interrupted =
      (native.flags & translate::kRcxIsPc) != 0 && thread.syscall_will_restart();
  moved_to(interrupted ? native.pc - arch::cpu::kSyscallInsnBytes : native.pc);
  return thread.set_user_regs(native.regs);
}

void CacheSource::want_room_for(UntranslatableReason why) {
  if (why == UntranslatableReason::kNone) space_->want_room();
}

void CacheSource::look_for_sections(Thread& thread) {
  if (const auto area = rseq_area(thread)) space_->look_for_section_of(*area);
}

cache::MissAnswer CacheSource::find_next(Thread& thread, TraceeAddr log) {
  if (!space_->is_open() || !everybody_recorded() || !space_->refresh()) return {};
  // A thread inside a section does not ask: it stops (DispatchStub).
  if (thread.stopped()) look_for_sections(thread);
  const cache::MissAnswer found = cache::answer_miss(process_, *space_, *memory_, log);
  if (found.why) want_room_for(*found.why);
  return found;
}

StopVerdict CacheSource::miss(Thread& thread) {
  const StatisticsTimer timer{measures_ ? &sums_->serving : nullptr};
  const TraceeAddr log{memory_->read(Slot::kLog)};
  const cache::MissAnswer found = find_next(thread, log);
  counts_.note_miss(log, found.why);
  const auto regs = thread.user_regs();
  if (!found.next || !regs) {
    if (!leave(thread)) return StopVerdict::kReport;
    if (found.why == UntranslatableReason::kFailedCall) make_call_again(thread);
    if (found.why == UntranslatableReason::kSystemCall && return_from_handler(thread)) {
      return StopVerdict::kResumed;
    }
    return step_natively(thread);
  }
  if (!thread.set_user_regs(cache::registers_after_miss(*regs, *memory_, log, *found.next))) {
    return StopVerdict::kReport;
  }
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
  const StatisticsTimer timer{measures_ ? &sums_->serving : nullptr};
  const TraceeAddr log{memory_->read(Slot::kLog)};
  const cache::MissAnswer found = find_next(thread, log);
  if (found.next) {
    counts_.note_miss(log, found.why);
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

bool CacheSource::return_from_handler(Thread& thread) {
  const SourceResume how = last_resume();
  if (how.step || how.syscalls || thread.stop_wanted() || process_.address_limit.counts_ours() ||
      !space_->protection().pages().empty() || !space_->is_open() || process_.lifted_for_vfork ||
      !everybody_recorded()) {
    return false;
  }
  const auto regs = handler_return_.begin(thread, *space_, *memory_, slice());
  if (!regs) return false;
  if (!thread.set_user_regs(*regs)) {
    handler_return_.forget();
    return false;
  }
  set_inside(true);
  counts_.note_entry();
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

void CacheSource::note_returned() {
  if (const auto branch = handler_return_.take()) push(*branch);
}

/// Call when a thread that was to return from a handler has stopped. Returns false if it has not
/// returned; the thread is then in its native state.
bool CacheSource::has_returned(Thread& thread, TraceeAddr pc) {
  if (space_->memory().has_code(pc)) {
    note_returned();
    return true;
  }
  handler_return_.undo(thread, slice());
  set_inside(false);
  moved_to(pc);
  return false;
}

}  // namespace backtrail::tracee
