// SPDX-License-Identifier: Apache-2.0
#include "ptrace/trace/thread_clock.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>
#include <utility>

#include "arch/cpu/translator.hpp"
#include "decoder/trace/stream_pin.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {
namespace {

using arch::cpu::translate::Slot;
using decoder::MarkKind;

/// Ring size: room for the marks between two looks.
constexpr std::uint64_t kRingBytes = 8UL * 4096;
/// Shorter times off the CPU are only counted.
constexpr std::uint64_t kShortestOff = 100'000;
/// Maximum of log entries that a running thread can have written since its log was last taken.
constexpr std::uint32_t kMostAhead = static_cast<std::uint32_t>(
    std::max(cache::kLogBytes, cache::kSegmentBytes) / arch::cpu::translate::kLogEntryBytes);

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

/// Returns how often the thread has left a CPU.
std::uint64_t switches_of(pid_t tid) {
  const auto text = ProcFs{}.read(tid, "status");
  if (!text) return 0;
  constexpr std::string_view kName = "voluntary_ctxt_switches:\t";  // and "nonvoluntary..."
  std::uint64_t out = 0;
  for (std::size_t at = text->find(kName); at != std::string::npos; at = text->find(kName, at)) {
    at += kName.size();
    std::uint64_t count = 0;
    std::from_chars(text->data() + at, text->data() + text->size(), count);
    out += count;
  }
  return out;
}

/// Returns the pc of a thread that waits in a system call; nullopt if it does not.
std::optional<TraceeAddr> pc_in_system_call(pid_t tid) {
  // The file has "NUMBER six arguments SP PC"; "-1 SP PC" outside of calls; or "running".
  const auto text = ProcFs{}.read(tid, "syscall");
  if (!text || text->empty() || text->front() < '0' || text->front() > '9') return std::nullopt;
  const std::size_t at = text->rfind("0x");
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t pc = 0;
  constexpr int kHexadecimal = 16;
  std::from_chars(text->data() + at + 2, text->data() + text->size(), pc, kHexadecimal);
  return TraceeAddr{pc};
}

/// The place of a waiting thread, relative to what has been taken of its log.
struct Ahead {
  std::uint32_t numbers = 0;
  std::uint64_t records = 0;  ///< Records after these entries.
};

/// Returns how many log entries a thread that waits in a system call of translated code has written
/// since its log was taken. Translated code saves the log pointer before each call.
std::optional<std::uint32_t> logged_ahead(cache::CacheSpace& space, pid_t tid) {
  // Thread parts are taken from the first on, so the first part with this id is the thread's.
  const std::size_t most =
      std::min(space.process().threads().size() + 8, space.memory().parts_at_once());
  for (std::size_t slot = 0; slot < most; ++slot) {
    const cache::ThreadMemory memory = space.memory().thread(slot);
    const std::uint64_t ids = memory.read(Slot::kProcessId);
    constexpr unsigned kIdBits = 32;
    if (ids >> kIdBits != static_cast<std::uint64_t>(tid)) continue;
    const TraceeAddr log{memory.read(Slot::kLog)};
    if (log < memory.log_begin() || log > memory.log_end()) return std::nullopt;
    return static_cast<std::uint32_t>(memory.entries(log).size());
  }
  return std::nullopt;
}

std::optional<Ahead> place_of_waiting(Thread& thread, TraceeAddr pc) {
  const auto& space = thread.process().cache_space;
  if (!space || !space->memory().has_code(pc)) return Ahead{};
  const auto numbers = logged_ahead(*space, thread.tid());
  const auto place = space->code().locate(pc);
  if (!numbers || !place || place->kind != cache::CodePlace::Kind::kBlock) return std::nullopt;
  const bool logged = (place->map_entry.flags & arch::cpu::translate::kCommitted) != 0;
  return Ahead{*numbers, logged ? 0U : place->map_entry.passed};
}

/// Subtracts the marks that the server's own stops caused; 0 if they dominate, because a mark costs
/// nothing compared with a stop.
std::size_t not_ours(std::size_t marks, std::size_t stops) {
  return marks > 4 * stops ? marks - 2 * stops : 0;
}

/// Pins come in pairs; the even one marks the earliest place.
constexpr std::uint64_t pair_of(std::uint64_t number, bool latest) {
  return number * 2 + (latest ? 1 : 0);
}

}  // namespace

std::uint64_t ThreadClock::now() {
  return now_ns();
}

Result<std::unique_ptr<ThreadClock>> ThreadClock::open(PerfKernel& kernel, pid_t tid,
                                                       const Before& before,
                                                       std::function<std::uint64_t()> records) {
  std::unique_ptr<ThreadClock> out{
      new ThreadClock{kernel, tid, before.since_ns, std::move(records)}};
  BT_CHECKED(out->begin(before));
  return out;
}

ThreadClock::ThreadClock(PerfKernel& kernel, pid_t tid, std::uint64_t since_ns,
                         std::function<std::uint64_t()> records)
    : kernel_{kernel}, tid_{tid}, pace_{since_ns}, records_{std::move(records)} {
  sums_.since_ns = now_ns();
}

/// Opens the event only if the thread is calm: for a short run, opening and closing it would cost
/// much.
Result<void> ThreadClock::begin(const Before& before) {
  const std::uint64_t switches = switches_of(tid_);
  if (pace_.busy_at_first(not_ours(2 * switches, before.stops), now_ns())) {
    switches_ = seen_switches_ = switches;
    return {};
  }
  BT_TRY(marks_, SchedMarks::open(kernel_, tid_, kRingBytes));
  note_opened();
  return {};
}

void ThreadClock::note_opened() {
  opened_ns_ = now_ns();
  has_marks_ = false;
}

void ThreadClock::note_stop() {
  last_stop_ = now_ns();
  ++stops_since_look_;
  stops_.push_back(*last_stop_);
  // A stop whose marks the kernel dropped for lack of room would otherwise stay for ever.
  constexpr std::size_t kMostStops = 65536;
  if (stops_.size() > kMostStops) stops_.pop_front();
}

std::size_t ThreadClock::take_marks() {
  if (!marks_) return 0;
  const auto marks = marks_->take();
  for (const decoder::TraceMark& mark : marks) take_mark(mark);
  has_marks_ |= !marks.empty();
  return marks.size();
}

bool ThreadClock::too_many(std::size_t marks) {
  return pace_.too_many(not_ours(marks, std::exchange(stops_since_look_, 0)), now_ns());
}

void ThreadClock::rest() {
  lost_ += marks_->lost();
  marks_.reset();
  switches_ = seen_switches_ = switches_of(tid_);
  left_.reset();
  left_is_pinned_ = false;
  waited_.reset();
  stops_.clear();
}

std::optional<ThreadClock::Waits> ThreadClock::waiting_place(Thread& thread) {
  const auto& space = thread.process().cache_space;
  const auto pc = space ? pc_in_system_call(tid_) : std::nullopt;
  if (!pc || !space->memory().has_code(*pc)) return std::nullopt;
  const auto place = place_of_waiting(thread, *pc);
  if (!place) return std::nullopt;
  return Waits{*pc, records_() + place->numbers};
}

/// Returns true if the thread has not run since the last look. Its log, which can be read without
/// the kernel, tells.
bool ThreadClock::has_stayed(Thread& thread) {
  const auto& space = thread.process().cache_space;
  const auto ahead = space ? logged_ahead(*space, tid_) : std::nullopt;
  std::optional<std::uint64_t> logged;
  if (ahead) logged = records_() + *ahead;
  const bool same = logged && logged == std::exchange(logged_, logged);
  const bool stopped = !stops_.empty();
  stops_.clear();
  return same && !stopped;
}

void ThreadClock::look_at_resting(Thread& thread) {
  const std::uint64_t before = std::exchange(looked_ns_, now_ns());
  const bool stayed = has_stayed(thread);
  const std::optional<Waits> waits = stayed ? waiting_place(thread) : std::nullopt;
  // A long wait is worth the cost of an event.
  const bool long_wait = waits && waits == waited_;
  waited_ = waits;
  // Asking the kernel is most of the cost of a look, so threads that keep running are asked about
  // less often.
  constexpr std::uint32_t kAskEvery = 4;
  const bool ask = stayed || ++looks_at_resting_ % kAskEvery == 0;
  if (!long_wait && !(ask && has_rested())) return;
  auto marks = SchedMarks::open(kernel_, tid_, kRingBytes);
  if (!marks) return;
  lost_ = lost_marks();
  marks_ = std::move(*marks);
  note_opened();
  // For a wait that began before the event was opened, only the end will be seen.
  if (waits && waits == waiting_place(thread)) {
    left_ = decoder::TraceMark{.kind = MarkKind::kDeparts,
                               .time_ns = long_wait ? before : looked_ns_,
                               .cpu = -1,
                               .at = {}};
  }
}

/// Counts the thread's switches when the shortest pause is over: an open event would cost more.
bool ThreadClock::has_rested() {
  if (!pace_.may_be_rested(looked_ns_)) return false;
  const std::uint64_t switches = switches_of(tid_);
  const std::uint64_t before = std::exchange(seen_switches_, switches);
  const std::size_t marks = 2 * (switches - std::min(switches, before));
  return pace_.rested(not_ours(marks, std::exchange(stops_since_look_, 0)), looked_ns_);
}

std::uint64_t ThreadClock::lost_marks() const {
  if (marks_) return lost_ + marks_->lost();
  const std::uint64_t switches = switches_of(tid_);
  return lost_ + 2 * (switches - std::min(switches, switches_));
}

void ThreadClock::take_mark(const decoder::TraceMark& mark) {
  if (mark.kind != MarkKind::kArrives) {
    left_ = mark;
    left_is_pinned_ = false;
    return;
  }
  const bool preempted = left_ && left_->kind == MarkKind::kPreempted;
  // A stop is noted after the thread's last arrival before it, and before the thread resumes.
  if (!preempted && forget_stops_before(mark.time_ns)) left_.reset();
  const bool pinned = std::exchange(left_is_pinned_, false);
  if (!left_ || mark.time_ns < left_->time_ns) return;
  // The thread stayed where it was until now.
  if (pinned) pins_.back().end_ns = mark.time_ns;
  add_off({left_->time_ns, mark.time_ns, preempted});
  left_.reset();
}

bool ThreadClock::forget_stops_before(std::uint64_t time_ns) {
  const auto later = std::find_if(stops_.begin(), stops_.end(),
                                  [=](std::uint64_t stop) { return stop >= time_ns; });
  const bool any = later != stops_.begin();
  stops_.erase(stops_.begin(), later);
  return any;
}

void ThreadClock::add_off(const decoder::OffCpu& off) {
  const auto count = [this](const decoder::OffCpu& one) {
    ++sums_.others;
    sums_.others_ns += one.length_ns();
  };
  if (off.length_ns() < kShortestOff) {
    count(off);
    return;
  }
  off_.push_back(off);
  if (off_.size() <= decoder::kMostOffCpu) return;
  count(off_.front());
  off_.pop_front();
}

void ThreadClock::look(Thread& thread, BranchSource& source) {
  if (!marks_) {
    if (!thread.stopped()) look_at_resting(thread);
  } else if (too_many(take_marks())) {
    rest();
  }
  if (thread.stopped() || left_is_pinned_) return;
  if (left_ && left_->kind == MarkKind::kDeparts && stops_.empty()) {
    look_at_waiting(thread, left_->time_ns, source);
    return;
  }
  // The thread may have been waiting since before its marks began.
  if (marks_ && !has_marks_ && look_at_waiting(thread, opened_ns_, source)) {
    left_ =
        decoder::TraceMark{.kind = MarkKind::kDeparts, .time_ns = opened_ns_, .cpu = -1, .at = {}};
    return;
  }
  look_at_running(source);
}

void ThreadClock::look_at_running(BranchSource& source) {
  const std::uint64_t now = now_ns();
  const std::uint64_t number = add_pin({.begin_ns = now, .end_ns = now});
  source.pin(pair_of(number, false), 0);
  source.pin(pair_of(number, true), kMostAhead);
}

bool ThreadClock::look_at_waiting(Thread& thread, std::uint64_t since, BranchSource& source) {
  const auto pc = pc_in_system_call(thread.tid());
  if (!pc) return false;  // for example a page read from disk: the log pointer is in a register
  const auto place = place_of_waiting(thread, *pc);
  const std::uint64_t now = now_ns();
  // The place is invalid if the thread has run meanwhile.
  if (!place || take_marks() != 0) return false;
  const std::uint64_t number =
      add_pin({.begin_ns = since, .end_ns = now, .exact = true, .passed = place->records});
  left_is_pinned_ = true;
  source.pin(pair_of(number, false), place->numbers);
  return true;
}

std::uint64_t ThreadClock::add_pin(const Pin& pin) {
  if (pins_.size() == decoder::kMostTimePins) {
    pins_.pop_front();
    ++first_pin_;
  }
  pins_.push_back(pin);
  return first_pin_ + pins_.size() - 1;
}

void ThreadClock::consume_mark(const decoder::TraceMark& mark) {
  if (mark.kind != decoder::kPinMark) return;
  const std::uint64_t id = decoder::pin_id(mark);
  const std::uint64_t number = id / 2;
  if (number < first_pin_ || number >= first_pin_ + pins_.size()) return;
  Pin& pin = pins_[static_cast<std::size_t>(number - first_pin_)];
  const std::uint64_t place = records_() + static_cast<std::uint64_t>(mark.cpu) + pin.passed;
  if (id == pair_of(number, true) || pin.exact) pin.latest = place;
  if (id == pair_of(number, false)) pin.earliest = place;
}

decoder::ThreadTimes ThreadClock::read() {
  take_marks();
  decoder::ThreadTimes out = sums_;
  const std::uint64_t now = now_ns();
  const std::uint64_t end = records_();
  out.until_ns = std::max(out.since_ns, last_stop_.value_or(now));
  out.lost = lost_marks();
  for (const Pin& pin : pins_) {
    // Entries that were logged at the look but are no longer kept have no place.
    if (!pin.earliest || pin.begin_ns < out.since_ns) continue;
    out.pins.push_back({pin.begin_ns, std::min(pin.end_ns, out.until_ns), *pin.earliest,
                        pin.latest.value_or(end)});
  }
  out.pins.push_back({out.until_ns, out.until_ns, end, end});
  out.off.assign(off_.begin(), off_.end());
  std::erase_if(out.off, [&](const decoder::OffCpu& off) {
    return off.begin_ns < out.since_ns || off.end_ns > out.until_ns;
  });
  return out;
}

}  // namespace backtrail::tracee
