// SPDX-License-Identifier: Apache-2.0
#include "server/target/core_past.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "server/target/core_values.hpp"

namespace backtrail::server {

using decoder::PastPosition;
using decoder::Timeline;
using tracee::BreakpointKind;
using tracee::ResumeKind;
using tracee::StopEvent;
using tracee::StopKind;

namespace {

/// gdb waits six seconds for a reply (three times `remotetimeout`), and takes one that comes later
/// for that of its next request.
constexpr std::chrono::seconds kMostForReply{2};

/// Limits the time for recovering values that a debugger waits for.
class ReplyTime {
 public:
  /// @param values  Borrowed; may be null.
  explicit ReplyTime(CoreValues* values) : values_{values} {
    if (values != nullptr) values->history().set_deadline(Clock::now() + kMostForReply);
  }
  ~ReplyTime() {
    if (values_ != nullptr) values_->history().set_deadline(std::nullopt);
  }
  ReplyTime(const ReplyTime&) = delete;
  ReplyTime& operator=(const ReplyTime&) = delete;

 private:
  using Clock = decoder::values::ValueHistory::Clock;
  CoreValues* values_;
};

/// Returns true if the recorder saw that nobody but the program's only thread can have written the
/// memory that it reads. Nothing is known of other writers without the fact, as in files of older
/// versions.
bool was_alone(const decoder::CoreFile& core, const decoder::TraceArchive& archive) {
  // The kernel writes the buffers of asynchronous requests while the thread runs.
  const bool asynchronous = std::ranges::any_of(core.mappings(), [](const auto& mapping) {
    return mapping.path.find("[io_uring]") != std::string::npos ||
           mapping.path.find("/[aio]") != std::string::npos;
  });
  if (asynchronous) return false;
  const auto is = [&](const char* fact, const char* value) {
    const auto found = core.about().find(fact);
    return found != core.about().end() && found->second == value;
  };
  // Versions that did not know all the kinds of other writers yet did not tell this.
  const bool is_complete = core.about().contains("shared-memory");
  return is_complete && is("foreign-writes", "none") && is("threads", "1") &&
         core.threads().size() == 1 && archive.threads().size() <= 1;
}

}  // namespace

struct CorePast::ThreadPast {
  ThreadPast(decoder::InsnCache& insns, std::unique_ptr<decoder::RecordSequence> its_records,
             TraceeAddr pc)
      : records{std::move(its_records)}, timeline{insns, *records, pc} {}

  std::unique_ptr<decoder::RecordSequence> records;
  Timeline timeline;
  std::optional<PastPosition> place;   ///< nullopt at the end of the trace.
  std::unique_ptr<CoreValues> values;  ///< Null until a register or memory of the past is read.

  [[nodiscard]] PastPosition here() const { return place.value_or(timeline.newest()); }
};

CorePast::CorePast(const decoder::CoreFile& core, tracee::CoreMemory& memory,
                   const CoreTraces& traces, const arch::cpu::GdbRegisterSet& registers)
    : core_{core},
      memory_{memory},
      traces_{traces},
      registers_{registers},
      pages_{core, memory, was_alone(core, traces.archive())},
      insns_{memory} {}

CorePast::~CorePast() = default;

CorePast::ThreadPast* CorePast::past_of(ThreadId thread) {
  if (const auto known = threads_.find(thread.tid); known != threads_.end()) {
    return known->second.get();
  }
  const decoder::CoreThread* found = traces_.find(thread);
  if (found == nullptr) return nullptr;
  std::unique_ptr<decoder::RecordSequence> records;
  if (const auto* trace = traces_.archive().find(found->tid);
      trace != nullptr && !trace->blocks.empty()) {
    records = std::make_unique<decoder::ArchiveRecords>(*trace);
  } else {
    records = std::make_unique<decoder::VectorRecords>(std::vector<decoder::Record>{});
  }
  auto& made = threads_[thread.tid];
  made = std::make_unique<ThreadPast>(insns_, std::move(records), found->user.pc());
  return made.get();
}

bool CorePast::in_past(ThreadId thread) const {
  const auto known = threads_.find(thread.tid);
  return known != threads_.end() && known->second->place.has_value();
}

CoreValues* CorePast::values_of(ThreadId thread) {
  if (past_of(thread) == nullptr) return nullptr;
  ThreadPast& past = *past_of(thread);
  if (past.values != nullptr || core_.isa() != arch::Isa::kAmd64) return past.values.get();
  // The core has no registers of a thread that had ended: there are no values to begin with.
  const auto found = std::ranges::find(core_.threads(), static_cast<std::uint32_t>(thread.tid),
                                       &decoder::CoreThread::tid);
  if (found == core_.threads().end()) return nullptr;
  std::vector<decoder::ValueFact> facts;
  if (const auto* trace = traces_.archive().find(found->tid); trace != nullptr) {
    facts = decoder::ArchiveRecords{*trace}.numbered(traces_.archive().facts(found->tid));
  }
  past.values = std::make_unique<CoreValues>(pages_, *found, memory_, slots_, past.timeline,
                                             *past.records, std::move(facts));
  return past.values.get();
}

std::vector<bool> CorePast::read_registers(ThreadId thread, arch::cpu::RawRegisters& raw) {
  const PastPosition place = past_of(thread)->here();
  std::vector<bool> known;
  if (CoreValues* values = values_of(thread)) {
    const ReplyTime time{values};
    known = values->registers(place, raw);
  }
  known.resize(registers_.registers().size());
  raw.user.set_pc(place.pc);
  known[registers_.pc_number()] = true;
  return known;
}

void CorePast::move_to(ThreadId thread, ThreadPast& past, const PastPosition& place,
                       bool crossed_gap) {
  preferred_ = thread;
  past.place = place;
  if (place == past.timeline.newest()) past.place.reset();
  if (crossed_gap) {
    message_ = "The trace has a gap here: it is not known what ran in between.\n";
  }
}

void CorePast::stop(ThreadId thread, StopKind kind) {
  event_ = StopEvent{.thread = thread, .kind = kind};
}

StopKind CorePast::breakpoint_kind(TraceeAddr pc) const {
  return software_stops_.contains(pc) ? StopKind::kSoftwareBreakpoint
                                      : StopKind::kHardwareBreakpoint;
}

Result<void> CorePast::go_back(ThreadId thread, ResumeKind how) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) {
    return fail(TraceErrc::kNotFound, "go back", static_cast<std::uint64_t>(thread.tid));
  }
  const auto before = past->timeline.back(past->here());
  if (!before) {
    if (past->records->begin() == past->records->end()) {
      message_ = "The file has no branch trace of this thread: there is no past to go back to.\n";
    }
    stop(thread, StopKind::kHistoryBegin);
    return {};
  }
  if (how == ResumeKind::kStep) {
    move_to(thread, *past, before->to, before->crossed_gap);
    stop(thread, StopKind::kStep);
    return {};
  }
  run(thread, *past, true);
  return {};
}

bool CorePast::go_forward(std::span<const ThreadResume> orders) {
  const ThreadResume* chosen = nullptr;
  for (const ThreadResume& order : orders) {
    if (!in_past(order.thread)) continue;
    const bool steps = order.action.kind != ResumeKind::kContinue;
    if (steps || order.thread == preferred_) chosen = &order;
    if (steps) break;
  }
  if (chosen == nullptr) return false;
  ThreadPast& past = *past_of(chosen->thread);
  if (chosen->action.kind == ResumeKind::kContinue) {
    run(chosen->thread, past, false);
  } else {
    step_forward(chosen->thread, past, chosen->action);
  }
  return true;
}

void CorePast::step_forward(ThreadId thread, ThreadPast& past, const tracee::ResumeAction& action) {
  const auto in_range = [&action](TraceeAddr pc) {
    return action.kind == ResumeKind::kRangeStep && pc >= action.range_begin &&
           pc < action.range_end;
  };
  PastPosition place = past.here();
  bool crossed_gap = false;
  do {
    const auto move = past.timeline.forward(place);
    if (!move) break;
    place = move->to;
    crossed_gap = crossed_gap || move->crossed_gap;
  } while (in_range(place.pc) && !stops_.contains(place.pc) && !crossed_gap);
  move_to(thread, past, place, crossed_gap);
  stop(thread, stops_.contains(place.pc) && in_range(place.pc) ? breakpoint_kind(place.pc)
                                                               : StopKind::kStep);
}

/// Moves until a breakpoint, a change of watched data, or the end of the history.
void CorePast::run(ThreadId thread, ThreadPast& past, bool back) {
  if (!watches_.empty()) return run_watched(thread, past, back);
  const Timeline::Search search = back ? past.timeline.search_back(past.here(), stops_)
                                       : past.timeline.search_forward(past.here(), stops_);
  move_to(thread, past, search.at, search.crossed_gap);
  const StopKind end = back ? StopKind::kHistoryBegin : StopKind::kHistoryEnd;
  stop(thread, search.found ? breakpoint_kind(search.at.pc) : end);
}

/// Searches the part of the history of which only constant memory is known: it has no changes to
/// watch. nullopt if `place` is not in this part.
std::optional<Timeline::Search> CorePast::search_unknown(ThreadId thread, ThreadPast& past,
                                                         const PastPosition& place, bool back) {
  CoreValues* values = values_of(thread);
  const PastPosition oldest = values != nullptr ? values->oldest() : past.timeline.newest();
  if (place >= oldest) return std::nullopt;
  if (back) return past.timeline.search_back(place, stops_);
  // Data that are known from `oldest` on change from the place before it.
  const auto last = past.timeline.back(oldest);
  if (!last || place >= last->to) return std::nullopt;
  Timeline::Search search = past.timeline.search_forward(place, stops_, last->to);
  search.found = search.found || stops_.contains(search.at.pc);
  return search;
}

void CorePast::run_watched(ThreadId thread, ThreadPast& past, bool back) {
  PastPosition place = past.here();
  const auto state = [&] {
    return watches_.state([&](TraceeAddr address, std::span<std::uint8_t> out) {
      return read_at(thread, place, address, out);
    });
  };
  bool crossed_gap = false;
  StopEvent event{.thread = thread, .kind = back ? StopKind::kHistoryBegin : StopKind::kHistoryEnd};
  std::optional<PastWatches::Change> change;
  std::optional<TraceeAddr> unseen;
  for (PastWatches::State now = state(); !change;) {
    if (const auto search = search_unknown(thread, past, place, back)) {
      place = search->at;
      crossed_gap = crossed_gap || search->crossed_gap;
      if (!unseen) unseen = watches_.unknown(now, now);
      if (search->found) {
        event.kind = breakpoint_kind(place.pc);
        break;
      }
      if (back) break;
    }
    const auto move = back ? past.timeline.back(place) : past.timeline.forward(place);
    if (!move) break;
    place = move->to;
    crossed_gap = crossed_gap || move->crossed_gap;
    PastWatches::State next = state();
    change = watches_.change(now, next);
    if (!unseen) unseen = watches_.unknown(now, next);
    now = std::move(next);
    if (!change && stops_.contains(place.pc)) {
      event.kind = breakpoint_kind(place.pc);
      break;
    }
  }
  if (change) {
    event.kind = StopKind::kWatchpoint;
    event.address = change->address;
  }
  move_to(thread, past, place, crossed_gap);
  if (change && !change->is_known) {
    message_ = message_.value_or("") +
               fmt::format(
                   "What is at {} may have been written here: its value is not known on "
                   "one side of this place.\n",
                   change->address);
  } else if (!change && unseen) {
    message_ = message_.value_or("") +
               fmt::format(
                   "What is at {} is not known on a part of the way: it may have been written "
                   "there.\n",
                   *unseen);
  }
  event_ = event;
}

std::optional<PastPosition> CorePast::find_after(ThreadId thread, std::uint64_t newer,
                                                 TraceeAddr pc, std::size_t most) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) return std::nullopt;
  decoder::RecordSequence& records = *past->records;
  if (records.end() - records.begin() <= newer) return std::nullopt;
  const std::uint64_t number = records.end() - 1 - newer;
  const Timeline::Block& block = past->timeline.block(number);
  PastPosition place{number, 0, past->timeline.newest().pc};
  if (!block.pcs.empty()) {
    place.pc = block.pcs.front();
  } else if (place != past->timeline.newest()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i <= most; ++i) {
    if (place.pc == pc) return place;
    const auto move = past->timeline.forward(place);
    if (!move || move->crossed_gap) return std::nullopt;
    for (std::uint64_t next = place.block; next < move->to.block; ++next) {
      if (records.at(next + 1).kind == decoder::RecordKind::kAsync) return std::nullopt;
    }
    place = move->to;
  }
  return std::nullopt;
}

std::optional<PastPosition> CorePast::find_return(ThreadId thread, std::uint64_t newer) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) return std::nullopt;
  decoder::RecordSequence& records = *past->records;
  if (records.end() - records.begin() <= newer) return std::nullopt;
  const std::uint64_t number = records.end() - 1 - newer;
  const decoder::Record record = records.at(number);
  if (record.kind != decoder::RecordKind::kBranch) return std::nullopt;
  if (insns_.at(record.from).kind != arch::InsnKind::kReturn) return std::nullopt;
  return find_after(thread, newer, record.to, 0);
}

decoder::values::Known CorePast::read_slot(ThreadId thread, const PastPosition& place,
                                           decoder::values::Slot slot) {
  CoreValues* values = values_of(thread);
  return values == nullptr ? decoder::values::Known{} : values->slot(place, slot);
}

std::size_t CorePast::read_at(ThreadId thread, const PastPosition& place, TraceeAddr address,
                              std::span<std::uint8_t> out) {
  std::size_t known = 0;
  while (known < out.size()) {
    const auto rest = out.subspan(known);
    std::size_t more = pages_.change_anywhere() ? 0 : memory_.read_constant(address + known, rest);
    if (CoreValues* values = more == 0 ? values_of(thread) : nullptr) {
      more = values->memory(place, address + known, rest);
    }
    if (more == 0) break;
    known += more;
  }
  return known;
}

std::size_t CorePast::read_memory(ThreadId thread, TraceeAddr address,
                                  std::span<std::uint8_t> out) {
  const ReplyTime time{values_of(thread)};
  return read_at(thread, past_of(thread)->here(), address, out);
}

std::optional<StopEvent> CorePast::take_event() {
  return std::exchange(event_, std::nullopt);
}

std::optional<std::string> CorePast::take_message() {
  return std::exchange(message_, std::nullopt);
}

Result<void> CorePast::insert(const tracee::BreakpointSpec& breakpoint) {
  switch (breakpoint.kind) {
    case BreakpointKind::kAccess:
      return fail(TraceErrc::kUnsupported, "watch reads in the past");
    case BreakpointKind::kWrite:
      watches_.insert(breakpoint.address, breakpoint.length);
      return {};
    case BreakpointKind::kSoftware:
      software_stops_.insert(breakpoint.address);
      break;
    case BreakpointKind::kHardware:
      hardware_stops_.insert(breakpoint.address);
      break;
  }
  stops_.insert(breakpoint.address);
  return {};
}

void CorePast::remove(const tracee::BreakpointSpec& breakpoint) {
  if (breakpoint.kind == BreakpointKind::kWrite) {
    watches_.remove(breakpoint.address, breakpoint.length);
  }
  if (breakpoint.kind == BreakpointKind::kSoftware) software_stops_.erase(breakpoint.address);
  if (breakpoint.kind == BreakpointKind::kHardware) hardware_stops_.erase(breakpoint.address);
  stops_ = software_stops_;
  stops_.insert(hardware_stops_.begin(), hardware_stops_.end());
}

}  // namespace backtrail::server
