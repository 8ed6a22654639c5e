// SPDX-License-Identifier: Apache-2.0
#include "server/target/program_past.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "server/target/past_values.hpp"

namespace backtrail::server {

using decoder::PastPosition;
using decoder::Timeline;
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
  explicit ReplyTime(PastValues* values) : values_{values} {
    if (values != nullptr) values->history().set_deadline(end_);
  }
  ~ReplyTime() {
    if (values_ != nullptr) values_->history().set_deadline(std::nullopt);
  }
  ReplyTime(const ReplyTime&) = delete;
  ReplyTime& operator=(const ReplyTime&) = delete;
  [[nodiscard]] bool is_over() const { return Clock::now() >= end_; }

 private:
  using Clock = decoder::values::ValueHistory::Clock;
  PastValues* values_;
  Clock::time_point end_ = Clock::now() + kMostForReply;
};

}  // namespace

struct ProgramPast::ThreadPast {
  ThreadPast(decoder::InsnCache& insns, ThreadEnd its_end)
      : end{std::move(its_end)},
        code{insns.code().isa(), end.facts},
        timeline{insns, *end.records, end.pc, &code} {}

  ThreadEnd end;
  decoder::CodeHistory code;
  Timeline timeline;
  std::optional<PastPosition> place;   ///< nullopt at the end of the trace.
  std::unique_ptr<PastValues> values;  ///< Null until a register or memory of the past is read.
  /// Registers at one place, as a debugger reads them several times.
  struct Registers {
    PastPosition place;
    arch::cpu::RawRegisters raw;
    std::vector<bool> known;
  };
  std::optional<Registers> registers;

  [[nodiscard]] PastPosition here() const { return place.value_or(timeline.newest()); }
};

ProgramPast::ProgramPast(PastEnd& end, const PastStops& stops)
    : end_{end}, stops_{stops}, slots_{end.registers()}, insns_{end.memory()} {}

ProgramPast::~ProgramPast() = default;

ProgramPast::ThreadPast* ProgramPast::past_of(ThreadId thread) {
  if (const auto known = threads_.find(thread.tid); known != threads_.end()) {
    return known->second.get();
  }
  auto found = end_.thread(thread);
  if (!found) return nullptr;
  auto& made = threads_[thread.tid];
  made = std::make_unique<ThreadPast>(insns_, std::move(*found));
  return made.get();
}

bool ProgramPast::in_past(ThreadId thread) const {
  const auto known = threads_.find(thread.tid);
  return known != threads_.end() && known->second->place.has_value();
}

std::vector<pid_t> ProgramPast::threads_in_past() const {
  std::vector<pid_t> out;
  for (const auto& [tid, past] : threads_) {
    if (past->place) out.push_back(tid);
  }
  return out;
}

PastValues* ProgramPast::values_of(ThreadId thread) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) return nullptr;
  const bool can_be = past->end.registers && end_.memory().isa() == arch::Isa::kAmd64;
  if (past->values == nullptr && can_be) {
    past->values = std::make_unique<PastValues>(end_, past->end, slots_, past->timeline);
  }
  return past->values.get();
}

std::vector<bool> ProgramPast::read_registers(ThreadId thread, arch::cpu::RawRegisters& raw) {
  ThreadPast& past = *past_of(thread);
  const PastPosition place = past.here();
  if (past.registers && past.registers->place == place) {
    raw = past.registers->raw;
    return past.registers->known;
  }
  std::vector<bool> known;
  PastValues* values = values_of(thread);
  const ReplyTime time{values};
  if (values != nullptr) known = values->registers(place, raw);
  known.resize(end_.registers().registers().size());
  raw.user.set_pc(place.pc);
  known[end_.registers().pc_number()] = true;
  // A value that was not recovered in time may be known the next time.
  if (!time.is_over()) past.registers = ThreadPast::Registers{place, raw, known};
  return known;
}

void ProgramPast::move_to(ThreadId thread, ThreadPast& past, const PastPosition& place,
                          bool crossed_gap) {
  preferred_ = thread;
  past.place = place;
  if (place == past.timeline.newest()) past.place.reset();
  if (crossed_gap) {
    message_ = "The trace has a gap here: it is not known what ran in between.\n";
  }
}

void ProgramPast::stop(ThreadId thread, StopKind kind) {
  event_ = StopEvent{.thread = thread, .kind = kind};
}

Result<void> ProgramPast::go_back(ThreadId thread, ResumeKind how) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) {
    return fail(TraceErrc::kNotFound, "go back", static_cast<std::uint64_t>(thread.tid));
  }
  const auto before = past->timeline.back(past->here());
  if (!before) {
    const decoder::RecordSequence& records = *past->end.records;
    if (records.begin() == records.end()) message_ = end_.why_no_past(thread);
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

const ThreadResume* ProgramPast::move_among(std::span<const ThreadResume> orders,
                                            ThreadId preferred, const PastControl& past) {
  const ThreadResume* chosen = nullptr;
  for (const ThreadResume& order : orders) {
    if (!past.in_past(order.thread)) continue;
    const bool steps = order.action.kind != ResumeKind::kContinue;
    if (steps || order.thread == preferred) chosen = &order;
    if (steps) break;
  }
  return chosen;
}

bool ProgramPast::go_forward(std::span<const ThreadResume> orders) {
  const ThreadResume* chosen = move_among(orders, preferred_, *this);
  if (chosen == nullptr) return false;
  go_forward(*chosen);
  return true;
}

void ProgramPast::go_forward(const ThreadResume& order) {
  ThreadPast& past = *past_of(order.thread);
  if (order.action.kind == ResumeKind::kContinue) {
    run(order.thread, past, false);
  } else {
    step_forward(order.thread, past, order.action);
  }
}

void ProgramPast::step_forward(ThreadId thread, ThreadPast& past,
                               const tracee::ResumeAction& action) {
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
  } while (in_range(place.pc) && !stops_.addresses().contains(place.pc) && !crossed_gap);
  move_to(thread, past, place, crossed_gap);
  stop(thread, stops_.addresses().contains(place.pc) && in_range(place.pc)
                   ? stops_.kind_at(place.pc)
                   : StopKind::kStep);
}

/// Moves until a breakpoint, a change of watched data, or the end of the history.
void ProgramPast::run(ThreadId thread, ThreadPast& past, bool back) {
  if (!stops_.watches().empty()) return run_watched(thread, past, back);
  const Timeline::Search search =
      back ? past.timeline.search_back(past.here(), stops_.addresses())
           : past.timeline.search_forward(past.here(), stops_.addresses());
  move_to(thread, past, search.at, search.crossed_gap);
  const StopKind end = back ? StopKind::kHistoryBegin : StopKind::kHistoryEnd;
  stop(thread, search.found ? stops_.kind_at(search.at.pc) : end);
}

/// Searches the part of the history of which only constant memory is known: it has no changes to
/// watch. nullopt if `place` is not in this part.
std::optional<Timeline::Search> ProgramPast::search_unknown(ThreadId thread, ThreadPast& past,
                                                            const PastPosition& place, bool back) {
  PastValues* values = values_of(thread);
  const PastPosition oldest = values != nullptr ? values->oldest() : past.timeline.newest();
  if (place >= oldest) return std::nullopt;
  if (back) return past.timeline.search_back(place, stops_.addresses());
  // Data that are known from `oldest` on change from the place before it.
  const auto last = past.timeline.back(oldest);
  if (!last || place >= last->to) return std::nullopt;
  Timeline::Search search = past.timeline.search_forward(place, stops_.addresses(), last->to);
  search.found = search.found || stops_.addresses().contains(search.at.pc);
  return search;
}

void ProgramPast::run_watched(ThreadId thread, ThreadPast& past, bool back) {
  PastPosition place = past.here();
  const auto state = [&] {
    return stops_.watches().state([&](TraceeAddr address, std::span<std::uint8_t> out) {
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
      if (!unseen) unseen = stops_.watches().unknown(now, now);
      if (search->found) {
        event.kind = stops_.kind_at(place.pc);
        break;
      }
      if (back) break;
    }
    const auto move = back ? past.timeline.back(place) : past.timeline.forward(place);
    if (!move) break;
    place = move->to;
    crossed_gap = crossed_gap || move->crossed_gap;
    PastWatches::State next = state();
    change = stops_.watches().change(now, next);
    if (!unseen) unseen = stops_.watches().unknown(now, next);
    now = std::move(next);
    if (!change && stops_.addresses().contains(place.pc)) {
      event.kind = stops_.kind_at(place.pc);
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

std::optional<PastPosition> ProgramPast::find_after(ThreadId thread, std::uint64_t newer,
                                                    TraceeAddr pc, std::size_t most) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) return std::nullopt;
  decoder::RecordSequence& records = *past->end.records;
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

std::optional<PastPosition> ProgramPast::find_return(ThreadId thread, std::uint64_t newer) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr) return std::nullopt;
  decoder::RecordSequence& records = *past->end.records;
  if (records.end() - records.begin() <= newer) return std::nullopt;
  const std::uint64_t number = records.end() - 1 - newer;
  const decoder::Record record = records.at(number);
  if (record.kind != decoder::RecordKind::kBranch) return std::nullopt;
  if (number == records.begin()) return std::nullopt;
  const arch::InsnFacts& facts =
      decoder::executed_facts(&past->code, insns_, number - 1, record.from);
  if (facts.kind != arch::InsnKind::kReturn) return std::nullopt;
  return find_after(thread, newer, record.to, 0);
}

decoder::values::Known ProgramPast::read_slot(ThreadId thread, const PastPosition& place,
                                              decoder::values::Slot slot) {
  PastValues* values = values_of(thread);
  return values == nullptr ? decoder::values::Known{} : values->slot(place, slot);
}

/// Reads the instruction that was executed at `place`: what the trace tells, or what it was
/// followed by.
std::size_t ProgramPast::read_executed(ThreadId thread, const PastPosition& place,
                                       TraceeAddr address, std::span<std::uint8_t> out) {
  ThreadPast* past = past_of(thread);
  if (past == nullptr || place == past->timeline.newest() || address < place.pc) return 0;
  const std::uint64_t done = address - place.pc;
  const decoder::ExecutedInsn* insn = past->timeline.executed(place.block, place.pc);
  const std::size_t length = insn != nullptr ? insn->facts.length : insns_.at(place.pc).length;
  if (done >= length) return 0;
  const std::size_t count = std::min<std::size_t>(length - done, out.size());
  if (insn == nullptr) {
    if (!past->code.is_as_at_end(place.block, place.pc, place.pc + length)) return 0;
    return end_.pages().change_anywhere() ? 0
                                          : end_.memory().read_constant(address, out.first(count));
  }
  std::copy_n(insn->view().begin() + static_cast<std::ptrdiff_t>(done), count, out.begin());
  return count;
}

/// Reads memory that has not changed since `place`. Most of it has been read only all the time.
std::size_t ProgramPast::read_constant(ThreadId thread, const PastPosition& place,
                                       TraceeAddr address, std::span<std::uint8_t> out) {
  if (end_.pages().change_anywhere()) return 0;
  std::size_t most = out.size();
  if (ThreadPast* past = past_of(thread); past != nullptr && place != past->timeline.newest()) {
    most = past->code.constant().bytes_at(place.block, address, most);
  }
  return end_.memory().read_constant(address, out.first(most));
}

std::size_t ProgramPast::read_at(ThreadId thread, const PastPosition& place, TraceeAddr address,
                                 std::span<std::uint8_t> out) {
  std::size_t known = 0;
  while (known < out.size()) {
    const auto rest = out.subspan(known);
    std::size_t more = read_constant(thread, place, address + known, rest);
    if (more == 0) more = read_executed(thread, place, address + known, rest);
    if (PastValues* values = more == 0 ? values_of(thread) : nullptr) {
      more = values->memory(place, address + known, rest);
    }
    if (more == 0) break;
    known += more;
  }
  return known;
}

std::size_t ProgramPast::read_memory(ThreadId thread, TraceeAddr address,
                                     std::span<std::uint8_t> out) {
  const ReplyTime time{values_of(thread)};
  return read_at(thread, past_of(thread)->here(), address, out);
}

std::optional<StopEvent> ProgramPast::take_event() {
  return std::exchange(event_, std::nullopt);
}

std::optional<std::string> ProgramPast::take_message() {
  return std::exchange(message_, std::nullopt);
}

}  // namespace backtrail::server
