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
#include "decoder/trace/stream_pin.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/recorder/fellow_threads.hpp"
#include "ptrace/codecache/recorder/file_watch.hpp"
#include "ptrace/codecache/recorder/misses.hpp"
#include "ptrace/codecache/recorder/native_state.hpp"
#include "ptrace/codecache/space/code_writers.hpp"
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

bool stands_at_handler(Thread& thread) {
  const WaitStatus& status = thread.status();
  return status.kind == WaitKind::kStopped && status.signal == SIGTRAP &&
         thread.trap_cause() == TrapCause::kHandlerEntry;
}

}  // namespace

CacheSource::CacheSource(Process& process, decoder::TraceConsumer& sink,
                         std::uint64_t history_bytes, const TraceConfig& config)
    : process_{process},
      drops_undecoded_{config.log_bytes != 0},
      sums_{config.statistics ? config.statistics : std::make_shared<SourceStatistics>()},
      measures_{config.statistics != nullptr},
      values_{config.values},
      persistent_store_{config.kept},
      spare_{config.spare},
      batch_{sink},
      stepper_{process, *this, std::make_unique<cache::FileWatch>(process)},
      log_{sink,
           {.history_bytes = history_bytes,
            .keeps_all = config.every_record,
            .statistics = config.statistics.get()}},
      facts_{part_, log_, batch_, stepper_.calls(), values_},
      conditions_{process, part_},
      calls_{process, config.kept != nullptr,
             [this](const std::string& why) { cache::disable(process_, *sums_, why); }},
      write_guard_{process},
      misses_{process,
              part_,
              stepper_,
              counts_,
              facts_.memory_told(),
              measures_ ? &sums_->serving : nullptr} {}

CacheSource::~CacheSource() {
  if (auto& logger = log::ptrace(); logger.writes(log::Level::kDebug)) {
    logger.debug("pid={}: {}", process_.pid(), statistics());
  }
  write_guard_.end_call();
  calls_.release();
  write_guard_.end_step(nullptr);
  drop_space();
  batch_.flush();
  sums_->branches += log_.counts().branches;
  sums_->instructions += log_.counts().instructions + stepper_.instructions();
  sums_->log_bytes += log_.entries_seen() * sizeof(std::uint32_t);
  sums_->values += log_.counts().values;
  sums_->full_logs += log_.full_logs();
  sums_->stepped += stepper_.instructions();
  counts_.add_to(*sums_);
  if (const std::string& why = conditions_.why_disabled(); !why.empty()) {
    ++sums_->fallbacks["all of a thread: " + why];
  }
}

std::string CacheSource::statistics() const {
  std::string text = fmt::format(
      "cache: {} exits logged, {} entries, {} misses, {} full logs, {} instructions stepped",
      log_.entries_seen(), counts_.entries(), counts_.misses(), log_.full_logs(),
      counts_.native_steps());
  if (part_) {
    text += cache::describe(part_.space().code());
    if (const std::size_t pages = part_.space().protection().pages().size(); pages != 0) {
      text += fmt::format("; {} write-protected pages", pages);
    }
  }
  text += counts_.untranslatable();
  if (const std::string& why = conditions_.why_disabled(); !why.empty()) {
    text += "; stepping: " + why;
  }
  if (process_.isa() != arch::Isa::kAmd64) text += "; stepping: a 32-bit program";
  if (part_ && part_.space().disabled()) text += "; stepping: " + part_.space().why_disabled();
  return text;
}

void CacheSource::drop_space() {
  if (log_.is_open() && !drops_undecoded_) flush();
  log_.close();
  part_.give_back();
}

void CacheSource::look_for_damage() {
  if (!part_.space().code().is_damaged() || part_.space().disabled()) return;
  log::ptrace().warn(
      "pid={}: the program has written to the recorder's memory; stepping from here on",
      process_.pid());
  part_.space().kept().give_up();
  cache::disable(process_, *sums_, "the program has written to the recorder's memory");
  cache::evict(process_);
}

bool CacheSource::serve(Thread& thread) {
  const bool served = misses_.serve(thread);
  if (served) look_for_damage();
  return served;
}

bool CacheSource::set_up(Thread& thread) {
  if (part_) return true;
  const StatisticsTimer timer{measures_ ? &sums_->setting_up : nullptr};
  const auto failed = [&](const Error& error) {
    // A thread that is gone needs no source; other errors will not go away.
    if (!error.is(TraceErrc::kTraceeGone)) conditions_.disable(error.message());
    return false;
  };
  if (auto why = cache::why_not_behind(process_.filters); !why.empty()) {
    conditions_.disable(std::move(why));
    return false;
  }
  auto space = cache::CacheSpace::of(
      thread, {.sums = sums_, .store = persistent_store_, .spare = spare_, .values = values_});
  if (!space) return failed(space.error());
  if (const auto taken = part_.take(std::move(*space), thread); !taken) {
    return failed(taken.error());
  }
  if (&part_.space().process() != &process_) part_.space().stop_at_breakpoints_of(process_);
  log_.open(part_.space(), part_.slot(), part_.memory());
  facts_.begin_log();
  return true;
}

bool CacheSource::enter(Thread& thread) {
  const auto before = thread.user_regs();
  if (!before || !conditions_.allows(thread, *before)) return false;
  if (cache::is_plain_stop(thread)) cache::remove_left_memory(thread);
  if (!set_up(thread) || part_.space().gate_closed() || !part_.space().refresh()) return false;
  if (cache::is_plain_stop(thread) && !part_.space().segv_action().learn(thread, part_.memory())) {
    return false;
  }
  if (part_.space().room_wanted() && !part_.space().make_room()) {
    cache::evict(process_);
    return false;
  }
  // The kernel has cleared the name of a sequence where it laid down a handler's frame.
  if (!stands_at_handler(thread)) misses_.look_for_sections(thread);
  TrapGuard::learn_ignored(thread);
  const auto translation = cache::look_for_code(
      part_.space(), before->pc(), [&] { return part_.space().code().translation(before->pc()); });
  part_.space().code().make_all_next();
  if (const auto* reason = std::get_if<UntranslatableReason>(&translation)) {
    counts_.note_untranslatable(*reason);
    misses_.note_untranslated(*reason);
    return false;
  }
  const auto mask = request::read_signal_mask(thread.tid());
  if (!mask) return false;
  part_.memory().write(Slot::kSegvBlocked, *mask & kSegvBit);
  note_slice(part_.memory(), stepper_.signals().slice(), process_.address_limit.counts_ours());
  const TraceeAddr to = std::get<TraceeAddr>(translation);
  if (!thread.set_user_regs(cache::translated_state(*before, part_.memory(), to))) return false;
  misses_.let_wait();
  facts_.enter();
  part_.set_inside(true);
  log_.begin_values();
  counts_.note_entry();
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

Result<void> CacheSource::resume(Thread& thread, const SourceResume& how) {
  if (!how.step && !how.syscalls && how.signal == 0 && enter(thread)) {
    stepper_.note_resumed(how);
    return {};
  }
  return go_natively(thread, how);
}

Result<void> CacheSource::go_natively(Thread& thread, const SourceResume& how) {
  switch (calls_.prepare(thread, how)) {
    case cache::CallInterceptor::Next::kGo:
      break;
    case cache::CallInterceptor::Next::kGoElsewhere:
      if (const auto pc = thread.pc()) stepper_.moved_to(*pc);
      break;
    case cache::CallInterceptor::Next::kWait:
      cache::evict(process_);
      return stop_again(thread, how);
    case cache::CallInterceptor::Next::kRequest:
      return stop_again(thread, how);
  }
  if (process_.cache_space) write_guard_.begin_step(thread);
  if (process_.cache_space || persistent_store_ || process_.address_limit.program() ||
      process_.code_writers->shares_memory(process_)) {
    const auto regs = thread.user_regs();
    const auto insn = regs ? process_.insn_bytes(regs->pc()) : std::span<const std::uint8_t>{};
    if (arch::cpu::is_syscall(insn)) {
      if (process_.cache_space) write_guard_.begin_call(thread, *regs);
      calls_.begin(thread, *regs, how, part_ ? &part_.memory() : nullptr);
      facts_.begin_call(*regs);
    } else if (cache::is_call_of_other_form(process_.isa(), regs->pc(), insn)) {
      calls_.begin_other_form(thread);
    }
  }
  facts_.forget_signal();
  if (how.signal != 0 && how.signal != SIGSTOP) {
    write_guard_.begin_delivery(thread);
    facts_.begin_signal(thread);
  }
  if (calls_.has_to_wait(thread, how)) {
    cache::evict(process_);
    return stop_again(thread, how);
  }
  counts_.note_native_step();
  facts_.begin_step(conditions_.excludes_for_good());
  return stepper_.resume(thread, how);
}

Result<void> CacheSource::stop_again(Thread& thread, const SourceResume& how) {
  BT_CHECKED(thread.interrupt());
  stepper_.note_resumed(how);
  return thread.run(RunRequest::kContinue, 0);
}

void CacheSource::go_on(Thread& thread, const SourceResume& how) {
  // If the thread is gone, its exit status will say so.
  (void)resume(thread, how);
}

std::optional<SignalSlice::Clock::time_point> CacheSource::stop_due() const {
  return stepper_.signals().stop_due();
}

std::uint64_t CacheSource::held_signals() const {
  return stepper_.signals().slice().held();
}

StopVerdict CacheSource::on_stop(Thread& thread, const WaitStatus& status) {
  if (status.is_event(PTRACE_EVENT_EXEC)) {
    drop_space();  // its memory went with the old program
    facts_.begin_program();
    write_guard_.forget();
    calls_.forget();
    handler_return_.forget();
    cache::leave_space(process_);
    if (process_.isa() != arch::Isa::kAmd64) (void)process_.address_limit.lower(process_.pid());
    // The moves must not be refused halfway.
    if (persistent_store_ && process_.filters.empty()) cache::fix_addresses(thread);
    return stepper_.on_stop(thread, status);
  }
  if (part_.inside()) return cache_stop(thread, status);
  (void)thread.user_regs();  // all of them are wanted in a moment: one request instead of two
  facts_.stop(thread);
  write_guard_.end_call();
  calls_.end(thread);
  stepper_.end_call(thread);
  if (const auto verdict = write_hit(thread, status)) return *verdict;
  write_guard_.end_step(&thread);
  if (calls_.takes_request(status)) return StopVerdict::kTraceRequest;
  if (calls_.repeats(thread, status)) {
    (void)resume(thread, stepper_.last_resume());
    return StopVerdict::kResumed;
  }
  return stepper_.on_stop(thread, status);
}

std::optional<StopVerdict> CacheSource::write_hit(Thread& thread, const WaitStatus& status) {
  if (!write_guard_.may_be_hit(status)) return std::nullopt;
  const auto blocked =
      part_.inside() ? std::optional{part_.forced_signals().segv_blocked(thread)} : std::nullopt;
  const auto hit = write_guard_.hit(thread, blocked);
  if (!hit) return std::nullopt;
  if (part_.inside() && !leave(thread)) return StopVerdict::kReport;
  stepper_.signals().slice().end(thread);
  if (!set_up(thread) || !write_guard_.let_write(thread, *hit, part_.slot())) return std::nullopt;
  counts_.note_native_step();
  (void)stepper_.resume(thread, stepper_.last_resume());
  return StopVerdict::kResumed;
}

void CacheSource::ran_unseen() {
  for (cache::CacheSpace* space : cache::spaces_in_memory_of(process_)) space->mappings_changed();
}

StopVerdict CacheSource::cache_stop(Thread& thread, const WaitStatus& status) {
  (void)thread.user_regs();  // all of them are wanted in a moment: one request instead of two
  const auto pc = thread.pc();
  if (!pc) return StopVerdict::kReport;  // the thread is gone
  if (handler_return_.in_progress() && !has_returned(thread, *pc)) return on_stop(thread, status);
  const cache::ForcedSignals forced = part_.forced_signals();
  if (*pc == part_.space().code().miss_stop()) {
    const bool taken = forced.take_trap(thread);
    if (taken && status.kind == WaitKind::kStopped && status.signal == SIGTRAP) return miss(thread);
  }
  if (status.kind == WaitKind::kStopped && status.signal == SIGSEGV) {
    if (*pc == part_.space().code().miss_fault()) {
      if (forced.fault_at(thread) && forced.take_fault(thread)) return miss(thread);
    } else if (forced.is_full_log(thread) && guard_hit(thread)) {
      return StopVerdict::kResumed;
    }
  }
  if (const auto verdict = write_hit(thread, status)) return *verdict;
  if (!part_.inside()) return StopVerdict::kReport;
  auto fault = cache::raised_by_insn(thread);
  if (!leave(thread)) return StopVerdict::kReport;
  // In other cases the instruction raises its signal again at its native address, with all state as
  // it must be.
  const bool certain = at_insn_ && !process_.address_limit.counts_ours();
  if (fault && !(certain && cache::raised_by_program(thread, *fault))) {
    (void)go_natively(thread, SourceResume{});
    return StopVerdict::kResumed;
  }
  stepper_.signals().slice().end(thread);
  TrapGuard::repair(thread);
  return StopVerdict::kReport;
}

bool CacheSource::guard_hit(Thread& thread) {
  const auto full = part_.memory().entries(part_.memory().log_end());
  const bool stays = log_.is_busy();
  if (cache::everybody_recorded(process_)) part_.space().look_for_code_to_protect(thread, full);
  if (!stays) part_.space().learn_from_log(full);
  auto regs = thread.user_regs();
  if (!regs || !part_.forced_signals().take_fault(thread)) return false;
  counts_.note_full_log();
  take_log(part_.memory().log_end());
  log_.renew(thread);
  (*regs)[UserReg::kR11] = part_.memory().log_begin().value();
  if (!thread.set_user_regs(*regs)) return false;
  if (log_.is_busy()) misses_.let_ask(thread);  // and the next segment is prepared meanwhile
  (void)thread.run(RunRequest::kContinue, 0);
  // While the thread runs on: this segment is not written again for a while.
  if (stays) part_.space().learn_from_log(full);
  if (log_.keeps_all()) hand_on();
  return true;
}

void CacheSource::push(const decoder::Record& record) {
  if (record.kind == decoder::RecordKind::kBranch) counts_.note_stepped_branch();
  if (log_.is_open() && log_.may_drain()) batch_.flush();
  facts_.before(record);
  add(record);
  facts_.after(record);
}

void CacheSource::add(const decoder::Record& record) {
  if (log_.is_open()) {
    log_.add_record(record);
  } else {
    batch_.push(record);
  }
}

void CacheSource::take_log(TraceeAddr log) {
  note_returned();
  if (log_.may_drain()) batch_.flush();
  log_.take(log);
}

Result<void> CacheSource::stream(std::uint64_t /*size_bytes*/) {
  log_.stream(!part_.inside());
  return {};
}

void CacheSource::pin(std::uint64_t id, std::uint32_t ahead) {
  // `ahead` counts from the beginning of the log.
  const auto taken = static_cast<std::uint32_t>(log_.taken());
  if (log_.is_open() && log_.may_drain()) batch_.flush();
  // Facts belong to records of what the thread does.
  add(decoder::pin_record(id, ahead - std::min(ahead, taken)));
}

void CacheSource::hand_on() {
  facts_.tell_lost_memory();
  batch_.flush();
  log_.drain();
}

std::uint64_t CacheSource::keep_newest(std::uint64_t branches) {
  return log_.keep_newest(branches);
}

void CacheSource::forget() {
  batch_.forget();
  log_.clear();
  facts_.forget();
}

std::unique_ptr<decoder::CacheLog> CacheSource::take_log_of_ended() {
  if (!log_.is_open() || part_.inside() || log_.streams()) return nullptr;
  facts_.tell_lost_memory();
  batch_.flush();
  return log_.release();
}

void CacheSource::flush() {
  if (const std::size_t fresh = part_.inside() ? log_.new_entries() : 0; fresh != 0) {
    note_returned();
    batch_.flush();
    log_.take_written(fresh);
  }
  facts_.flush();
  hand_on();
}

void CacheSource::on_breakpoint(TraceeAddr address) {
  if (part_) part_.space().code().split_at(address);
}

void CacheSource::on_code_written(TraceeAddr begin, TraceeAddr end) {
  stepper_.calls().code_written(begin, end);
  flush();
  for (cache::CacheSpace* space : cache::spaces_in_memory_of(process_)) {
    space->code_written(begin, end);
  }
}

void CacheSource::detach(Thread& thread) {
  write_guard_.end_call();
  calls_.release();
  write_guard_.end_step(&thread);
  stepper_.detach(thread);
  flush();
  drop_space();
  const auto& space = process_.cache_space;
  // No other code handles this thread's write faults.
  if (space) (void)space->protection().unprotect_all(thread);
  // Other processes run translated code in the memory in which this one runs on.
  if (process_.code_writers->shares_memory(process_)) cache::note_unrecorded_user(process_);
  if (!space || space->threads().used()) return;
  cache::remove_memory(thread, *space);
  cache::leave_space(process_);
}

Result<void> CacheSource::leave(Thread& thread) {
  BT_TRY(const arch::cpu::UserRegs stopped_at, thread.user_regs());
  part_.set_inside(false);
  misses_.let_wait();
  const auto place = part_.space().code().locate(stopped_at.pc());
  if (!place) {
    log::ptrace().error(
        "tid={}: left translated code at {} by itself (r10={:#x} r11={:#x} rsp={}); a signal from "
        "here is the recorder's fault, not the program's",
        thread.tid(), stopped_at.pc(), stopped_at[UserReg::kR10], stopped_at[UserReg::kR11],
        stopped_at.sp());
    conditions_.disable("the thread left translated code by itself");
    part_.space().kept().give_up();
  }
  translate::ProgramState native =
      cache::program_state(part_.space().code(), part_.memory(), place, stopped_at);
  at_insn_ = cache::is_before_insn(place, native);
  const auto unfinished =
      cache::unfinished_block(process_, part_.space().code(), part_.memory(), place, native);
  if (place && place->map_entry.values != 0) log_.count_values(place->map_entry.values);
  take_log(native.log);
  if (place) log_.end_values(unfinished ? unfinished->values : 0);
  if (unfinished) {
    log_.add_passed(*unfinished);
  } else {
    log_.add_arrival(native.pc);
  }
  native.regs[UserReg::kRip] = native.pc.value();
  native.regs[UserReg::kGsBase] = 0;
  // A call that will be repeated is not complete yet.
  const bool interrupted =
      (native.flags & translate::kRcxIsPc) != 0 && thread.syscall_will_restart();
  const TraceeAddr next = interrupted ? native.pc - arch::cpu::kSyscallInsnBytes : native.pc;
  stepper_.moved_to(next);
  // Most likely it is stepped now. Reading the thread's memory costs as much as a switch to it.
  std::array<std::uint8_t, arch::kMaxInsnBytes> insn{};
  const std::size_t known = part_.space().read_unchanged(next, insn);
  if (known != 0) process_.note_insn_bytes(next, std::span{insn}.first(known));
  return thread.set_user_regs(native.regs);
}

StopVerdict CacheSource::miss(Thread& thread) {
  const StatisticsTimer timer{measures_ ? &sums_->serving : nullptr};
  const TraceeAddr log{part_.memory().read(Slot::kLog)};
  const cache::MissAnswer found = misses_.find_next(thread, log);
  look_for_damage();
  counts_.note_miss(log, found.why);
  const auto regs = thread.user_regs();
  if (!found.next || !regs) return missed(thread, found);
  if (!thread.set_user_regs(cache::registers_after_miss(*regs, part_.memory(), log, *found.next))) {
    return StopVerdict::kReport;
  }
  misses_.let_ask(thread);
  (void)thread.run(RunRequest::kContinue, 0);
  return StopVerdict::kResumed;
}

StopVerdict CacheSource::missed(Thread& thread, const cache::MissAnswer& found) {
  if (!leave(thread)) return StopVerdict::kReport;
  if (!found.why) {
    (void)resume(thread, SourceResume{});
    return StopVerdict::kResumed;
  }
  if (found.why == UntranslatableReason::kFailedCall) {
    // Write protection may be the cause: the call is then repeated.
    const auto from = thread.pc();
    if (from && write_guard_.repeat_call(thread, part_.memory().read(Slot::kArgument))) {
      on_pc_written(*from, *from - arch::cpu::kSyscallInsnBytes);
    }
  }
  const bool returns =
      found.why == UntranslatableReason::kSystemCall && return_from_handler(thread);
  if (!returns) (void)go_natively(thread, SourceResume{});
  return StopVerdict::kResumed;
}

Result<std::size_t> CacheSource::translate_ahead(Thread& thread, std::uint64_t most_bytes) {
  if (process_.isa() != arch::Isa::kAmd64 || !set_up(thread)) {
    return fail(TraceErrc::kUnsupported, "translate ahead");
  }
  return part_.space().translate_ahead(most_bytes);
}

bool CacheSource::return_from_handler(Thread& thread) {
  const SourceResume how = stepper_.last_resume();
  if (how.step || how.syscalls || thread.stop_wanted() || process_.address_limit.counts_ours() ||
      !part_.space().protection().pages().empty() || !part_.space().is_open() ||
      process_.lifted_for_vfork || !cache::everybody_recorded(process_)) {
    return false;
  }
  const auto regs =
      handler_return_.begin(thread, part_.space(), part_.memory(), stepper_.signals().slice());
  if (!regs) return false;
  if (!thread.set_user_regs(*regs)) {
    handler_return_.forget();
    return false;
  }
  part_.set_inside(true);
  log_.begin_values();
  counts_.note_entry();
  (void)thread.run(RunRequest::kContinue, 0);
  return true;
}

void CacheSource::note_returned() {
  if (const auto branch = handler_return_.take()) push(*branch);
}

bool CacheSource::has_returned(Thread& thread, TraceeAddr pc) {
  if (part_.space().memory().has_code(pc)) {
    note_returned();
    return true;
  }
  handler_return_.undo(thread, stepper_.signals().slice());
  part_.set_inside(false);
  misses_.let_wait();
  stepper_.moved_to(pc);
  return false;
}

}  // namespace backtrail::tracee
