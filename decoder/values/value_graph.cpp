// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_graph.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "decoder/values/frame_pairs.hpp"

namespace backtrail::decoder::values {

using cpu::InsnModel;
using cpu::Ref;
using cpu::Special;

namespace {

/// Registers that the kernel sets on entry to a signal handler. Vector registers are reset.
constexpr std::array kHandlerSlots{cpu::kRax, cpu::kRdx, cpu::kRsp,
                                   cpu::kRsi, cpu::kRdi, cpu::kFlagsSlot};

bool code_is_constant(EndState& end, TraceeAddr pc, const InsnModel& model) {
  return end.page(pc) == PageKind::kConstant &&
         end.page(pc + (model.length - 1U)) == PageKind::kConstant;
}

}  // namespace

std::size_t ValueGraph::last_break(const Window& window, std::size_t begin, ModelCache& models,
                                   EndState& end) {
  for (const Event& event : window.events) {
    // If the interrupted code is not known, neither is what it did before the signal.
    const bool hides =
        event.kind == EventKind::kGap || (event.code == nullptr && event.interrupted.value() != 0 &&
                                          end.page(event.interrupted) != PageKind::kConstant);
    if (hides) begin = std::max(begin, event.before);
  }
  for (std::size_t i = window.steps.size(); i > begin; --i) {
    const Step& step = window.steps[i - 1];
    const InsnModel& model = models.of(step);
    if (model.length == 0 || model.special == Special::kOpaque ||
        (step.code == nullptr && !code_is_constant(end, step.pc, model))) {
      return i;
    }
  }
  return begin;
}

ValueGraph::ValueGraph(const Window& window, std::size_t begin, ModelCache& models, EndState& end)
    : frame_bytes{cpu::signal_frame_bytes(window.components)},
      begin_{last_break(window, begin, models, end)},
      end_{window.steps.size()} {
  const std::size_t count = end_ - begin_;
  known.reserve(count * 4);
  nodes.reserve(count * 4);
  accesses.reserve(count);
  first_definition_.reserve(count + 1);
  first_access_.reserve(count + 1);
  for (Var& var : current_) var = fresh();
  stack_pointers.push_back(current_[cpu::kRsp]);
  auto event = std::find_if(window.events.begin(), window.events.end(),
                            [this](const Event& e) { return e.before > begin_; });
  for (step_ = begin_;; ++step_) {
    // A signal's effects belong to the step before it, so that the position shows the handler.
    for (; event != window.events.end() && event->before == step_; ++event) {
      add_signal(window, static_cast<std::size_t>(event - window.events.begin()), models);
    }
    add_facts(window, Fact::kNoSignal);
    if (step_ == end_) {
      // The instruction at the end has not run.
      old_bytes_.clear();
      meet_end(models, window, end);
    } else {
      add_fetch(window.steps[step_], end);
    }
    first_definition_.push_back(static_cast<std::uint32_t>(definitions_.size()));
    first_access_.push_back(static_cast<std::uint32_t>(accesses.size()));
    if ((step_ - begin_) % kCheckpointSteps == 0) checkpoints_.push_back(current_);
    if (step_ == end_) break;
    add_step(window.steps[step_], models.of(window.steps[step_]));
    old_bytes_.clear();
  }
  if (window.links != FrameLinks::kNone) link_frames(window, models);
}

void ValueGraph::link_frames(const Window& window, ModelCache& models) {
  constexpr std::array<Slot, 7> kPreserved{cpu::kRsp, cpu::kRbx, cpu::kRbp, 12, 13, 14, 15};
  for (const FramePair& pair : frame_pairs(window, begin_, models)) {
    for (const Slot slot : kPreserved) {
      const Var before = reg(pair.call, slot);
      const Var after = reg(pair.ret + 1, slot);
      if (before == after) continue;
      nodes.push_back({{cpu::Op::kEqual, 64, 0, 0}, 2, {before, after}});
    }
  }
}

Var ValueGraph::reg(std::size_t position, Slot slot) const {
  const std::size_t at = position - begin_;
  const std::size_t from = at / kCheckpointSteps;
  for (std::size_t i = first_definition_[at]; i > first_definition_[from * kCheckpointSteps]; --i) {
    if (definitions_[i - 1].first == slot) return definitions_[i - 1].second;
  }
  return checkpoints_[from][slot];
}

ValueGraph::Slots ValueGraph::registers(std::size_t position) const {
  const std::size_t at = position - begin_;
  const std::size_t from = at / kCheckpointSteps;
  Slots vars = checkpoints_[from];
  for (std::size_t i = first_definition_[from * kCheckpointSteps]; i < first_definition_[at]; ++i) {
    vars[definitions_[i].first] = definitions_[i].second;
  }
  return vars;
}

Var ValueGraph::constant(std::uint64_t value) {
  const auto [found, is_new] = constants_.try_emplace(value, 0);
  if (is_new) {
    found->second = fresh();
    known.back() = cpu::known(value);
  }
  return found->second;
}

void ValueGraph::define(Slot slot, Var var) {
  current_[slot] = var;
  if (slot == cpu::kRsp) stack_pointers.push_back(var);
  definitions_.emplace_back(slot, var);
}

void ValueGraph::forget(std::span<const Slot> slots) {
  for (const Slot slot : slots) define(slot, fresh());
}

void ValueGraph::add_signal(const Window& window, std::size_t event, ModelCache& models) {
  if (const InsnModel* model = models.interrupted_by(window.events[event])) {
    instantiate(*model, TraceeAddr{});
  }
  const std::size_t facts = next_fact_;
  add_facts(window, event);
  const bool is_recorded = next_fact_ != facts;
  const Slots before = current_;
  SignalFrame frame{static_cast<std::uint32_t>(accesses.size()), current_[cpu::kRsp], kNoVar};
  forget(kHandlerSlots);
  // The kernel clears the direction flag.
  known[current_[cpu::kFlagsSlot]] = {0, std::uint64_t{1} << cpu::kDf};
  for (Slot slot = cpu::kFirstVectorSlot; slot < cpu::kSlotCount; ++slot) define(slot, fresh());
  frame.rsp_after = current_[cpu::kRsp];
  accesses.push_back({cpu::AccessKind::kUnknownStore, 0, static_cast<std::uint32_t>(step_),
                      constant(0), constant(0), 0});
  frames.push_back(frame);
  const bool is_after_call =
      step_ == begin_ || models.of(window.steps[step_ - 1]).special == Special::kSystemCall;
  add_frame_words(before, is_after_call);
  if (is_recorded) add_more_frame_words(before, window.events[event].interrupted);
}

/// The recorders that record registers at signals leave frames alone.
void ValueGraph::add_more_frame_words(const Slots& before, TraceeAddr interrupted) {
  const auto add = [this](std::int64_t offset, Var value) {
    accesses.push_back({cpu::AccessKind::kStore, sizeof(std::uint64_t),
                        static_cast<std::uint32_t>(step_), current_[cpu::kRsp], value,
                        cpu::kContextOffset + offset});
  };
  for (const cpu::FrameWord& word : cpu::kMoreFrameWords) add(word.offset, before[word.slot]);
  if (interrupted.value() != 0) add(cpu::kFramePcOffset, constant(interrupted.value()));
}

void ValueGraph::add_frame_words(const Slots& before, bool is_after_call) {
  for (const cpu::FrameWord& word : cpu::kFrameWords) {
    // The kernel saves another result of a call that it interrupted than is shown to debuggers.
    if (is_after_call && word.slot == cpu::kRax) continue;
    accesses.push_back({cpu::AccessKind::kStore, sizeof(std::uint64_t),
                        static_cast<std::uint32_t>(step_), current_[cpu::kRsp], before[word.slot],
                        cpu::kContextOffset + word.offset});
  }
}

void ValueGraph::add_facts(const Window& window, std::size_t signal) {
  for (; next_fact_ < window.facts.size(); ++next_fact_) {
    const Fact& fact = window.facts[next_fact_];
    if (fact.step > step_ || (fact.step == step_ && fact.signal > signal)) return;
    if (fact.step < step_ || fact.signal != signal) continue;
    if (const auto old = arch::old_bytes_of(fact.kind)) {
      add_old_bytes(fact, *old);
    } else {
      add_register(fact);
    }
  }
}

void ValueGraph::add_register(const Fact& fact) {
  const bool is_flags = fact.kind == arch::kFlagsKind;
  const Slot slot = is_flags ? cpu::kFlagsSlot : Slot{fact.kind};
  const std::uint64_t mask = is_flags ? cpu::kTrackedFlags : ~std::uint64_t{0};
  consistent &= known[current_[slot]].learn(fact.value, mask);
}

/// A load before the step stands for the bytes. Its address is found by place_old_bytes().
void ValueGraph::add_old_bytes(const Fact& fact, const arch::OldBytes& old) {
  // If the step was interrupted before it began, its newest values count.
  const auto same = std::ranges::find_if(
      old_bytes_, [&old](const auto& each) { return each.first.part == old.part; });
  if (same != old_bytes_.end()) {
    known[accesses[same->second].value] = cpu::known(fact.value);
    return;
  }
  old_bytes_.emplace_back(old, static_cast<std::uint32_t>(accesses.size()));
  accesses.push_back(
      {cpu::AccessKind::kLoad, old.size, static_cast<std::uint32_t>(step_), fresh(), fresh(), 0});
  known.back() = cpu::known(fact.value);
}

/// The parts lie side by side from the lowest address of the step's stores on. If these are others
/// than what was recorded, the loads stay without an address.
void ValueGraph::place_old_bytes(const InsnModel& model, TraceeAddr next) {
  const cpu::AccessModel* lowest = nullptr;
  for (const cpu::AccessModel& access : model.accesses) {
    if (access.kind == cpu::AccessKind::kLoad) continue;
    const bool is_plain = access.kind == cpu::AccessKind::kStore &&
                          (lowest == nullptr || access.base == lowest->base);
    if (!is_plain) return;
    if (lowest == nullptr || access.offset < lowest->offset) lowest = &access;
  }
  if (lowest == nullptr) return;
  for (const auto& [old, load] : old_bytes_) {
    accesses[load].base = var_of(lowest->base, model, next);
    accesses[load].offset = lowest->offset + std::int64_t{8} * old.part;
  }
}

Var ValueGraph::var_of(Ref ref, const InsnModel& model, TraceeAddr next) {
  switch (ref.kind) {
    case Ref::Kind::kSlot:
      return current_[ref.index];
    case Ref::Kind::kTemp:
      return temps_ + ref.index;
    case Ref::Kind::kConstant:
      return constant(model.constants[ref.index]);
    case Ref::Kind::kNextPc:
      return next.value() == 0 ? fresh() : constant(next.value());
    case Ref::Kind::kNone:
      break;
  }
  return kNoVar;
}

void ValueGraph::instantiate(const InsnModel& model, TraceeAddr next) {
  temps_ = static_cast<Var>(known.size());
  known.resize(known.size() + model.temps);
  for (const InsnModel::Initial& initial : model.initials) {
    consistent &= known[temps_ + initial.temp.index].learn(initial.value, initial.mask);
  }
  for (const cpu::MicroOp& op : model.ops) {
    Node node{{op.op, op.width, op.p, op.q}, 0, {}};
    for (const Ref ref : op.refs) {
      if (ref.none()) break;
      node.vars[node.count++] = var_of(ref, model, next);
    }
    nodes.push_back(node);
  }
  place_old_bytes(model, next);
  for (const cpu::AccessModel& access : model.accesses) {
    accesses.push_back({access.kind, access.size, static_cast<std::uint32_t>(step_),
                        var_of(access.base, model, next), var_of(access.value, model, next),
                        access.offset});
    if (!access.fill.none()) accesses.back().fill = var_of(access.fill, model, next);
    if (access.kind == cpu::AccessKind::kStore) find_old_bytes(accesses.back());
  }
  std::array<std::pair<Slot, Var>, cpu::kSlotCount> defined;
  std::size_t count = 0;
  // All registers are read before any is written.
  for (const InsnModel::Definition& definition : model.definitions) {
    if (count == defined.size()) break;
    defined[count++] = {definition.slot, var_of(definition.ref, model, next)};
  }
  for (std::size_t i = 0; i < count; ++i) define(defined[i].first, defined[i].second);
}

void ValueGraph::find_old_bytes(Access& store) const {
  for (const auto& [old, load] : old_bytes_) {
    const Access& before = accesses[load];
    const bool is_same = before.base == store.base && before.offset == store.offset;
    if (is_same && before.size == store.size) store.old = before.value;
  }
}

void ValueGraph::follow_branch(const InsnModel& model, const Step& step) {
  const TraceeAddr behind = step.pc + model.length;
  if (model.target == behind) return;
  const bool taken = step.next == model.target;
  if (!taken && step.next != behind) return;
  consistent &= known[temps_ + model.condition.index].learn(taken ? 1 : 0, 1);
}

void ValueGraph::add_system_call() {
  SystemCall call{static_cast<std::uint32_t>(step_),
                  static_cast<std::uint32_t>(accesses.size()),
                  {},
                  kNoVar,
                  current_[cpu::kRsp],
                  true};
  constexpr std::array<Slot, 7> kIn{cpu::kRax, cpu::kRdi, cpu::kRsi, cpu::kRdx, 10, 8, 9};
  for (std::size_t i = 0; i < kIn.size(); ++i) call.in[i] = current_[kIn[i]];
  for (unsigned i = 0; i < kCallAccesses; ++i) {
    accesses.push_back({cpu::AccessKind::kUnknownStore, 0, static_cast<std::uint32_t>(step_),
                        constant(0), constant(0), 0});
  }
  constexpr std::array kOut{cpu::kRax, cpu::kRcx, cpu::kR11};
  forget(kOut);
  call.result = current_[cpu::kRax];
  calls.push_back(call);
}

void ValueGraph::add_handler_return() {
  const Var frame = current_[cpu::kRsp];
  std::array<Var, cpu::kFrameWords.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = fresh();
    accesses.push_back({cpu::AccessKind::kLoad, sizeof(std::uint64_t),
                        static_cast<std::uint32_t>(step_), frame, words[i],
                        cpu::kFrameWords[i].offset});
  }
  add_system_call();
  calls.back().returns_behind = false;
  for (Slot slot = 0; slot < cpu::kSlotCount; ++slot) {
    const auto* word = std::ranges::find(cpu::kFrameWords, slot, &cpu::FrameWord::slot);
    const bool is_restored = word != cpu::kFrameWords.end();
    // The kernel leaves the bases of the segments as they are.
    if (slot == cpu::kFsBaseSlot || slot == cpu::kGsBaseSlot) continue;
    define(slot, is_restored ? words[static_cast<std::size_t>(word - cpu::kFrameWords.begin())]
                             : fresh());
  }
}

/// The bytes that were executed were in memory. Other threads may have changed the protection of
/// memory that is constant at the end.
void ValueGraph::add_fetch(const Step& step, EndState& end) {
  if (step.code == nullptr || end.page(step.pc) != PageKind::kPrivate) return;
  const std::span<const std::uint8_t> bytes = step.code->view();
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t size = std::bit_floor(std::min<std::size_t>(bytes.size() - at, 8));
    std::uint64_t value = 0;
    std::memcpy(&value, &bytes[at], size);
    accesses.push_back({cpu::AccessKind::kLoad, static_cast<std::uint8_t>(size),
                        static_cast<std::uint32_t>(step_), constant(step.pc.value()),
                        constant(value), static_cast<std::int64_t>(at)});
    at += size;
  }
}

void ValueGraph::add_step(const Step& step, const InsnModel& model) {
  if (model.special == Special::kSystemCall) {
    if (is_handler_return(step, model)) return add_handler_return();
    return add_system_call();
  }
  instantiate(model, step.next);
  if (model.special == Special::kBranch) follow_branch(model, step);
}

void ValueGraph::meet_end(ModelCache& models, const Window& window, EndState& end) {
  half_done_accesses = static_cast<std::uint32_t>(accesses.size());
  const InsnModel* model = window.stopped ? models.interrupted(window.end_pc) : nullptr;
  if (model != nullptr) instantiate(*model, TraceeAddr{});
  for (Slot slot = 0; slot < cpu::kSlotCount; ++slot) {
    Known value = end.reg(slot);
    if (slot == cpu::kFlagsSlot) value.mask &= cpu::kTrackedFlags;
    consistent &= known[current_[slot]].learn(value.value & value.mask, value.mask);
  }
}

}  // namespace backtrail::decoder::values
