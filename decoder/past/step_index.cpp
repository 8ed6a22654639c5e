// SPDX-License-Identifier: Apache-2.0
#include "decoder/past/step_index.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::decoder {

using values::EventKind;

StepIndex::StepIndex(Timeline& timeline, RecordSequence& records, std::size_t most,
                     const std::optional<PastPosition>& changed, std::vector<ValueFact> facts)
    : timeline_{timeline},
      records_{records},
      facts_{std::move(facts)},
      newest_{timeline.newest().block} {
  std::erase_if(facts_, [](const ValueFact& fact) {
    return arch::is_of_code(fact.kind) || arch::is_of_memory(fact.kind);
  });
  for (std::uint64_t block = newest_; steps_ < most; --block) {
    const Timeline::Block& here = timeline.block(block);
    steps_ += here.pcs.size();
    from_end_.push_back(steps_);
    if (here.begins_history) break;
  }
  if (changed) changed_ = *changed <= timeline.newest() ? number(*changed) : steps_;
}

std::size_t StepIndex::first_of(std::uint64_t block) const {
  return steps_ - from_end_[newest_ - block];
}

std::optional<std::size_t> StepIndex::number(const PastPosition& place) const {
  if (newest_ - place.block >= from_end_.size()) return std::nullopt;
  return first_of(place.block) + place.instruction;
}

PastPosition StepIndex::place(std::size_t step) {
  if (step == steps_) return timeline_.newest();
  const auto at = std::ranges::lower_bound(from_end_, steps_ - step);
  const std::uint64_t block = newest_ - static_cast<std::uint64_t>(at - from_end_.begin());
  const std::size_t instruction = step - first_of(block);
  return {block, static_cast<std::uint32_t>(instruction), timeline_.block(block).pcs[instruction]};
}

void StepIndex::add_facts(std::uint64_t block, std::size_t begin, std::size_t end,
                          values::Window& out) {
  auto next = std::ranges::lower_bound(facts_, block, {}, &ValueFact::record);
  const auto& pcs = timeline_.block(block).pcs;
  std::size_t at = 0;
  for (; next != facts_.end() && next->record == block; ++next) {
    const ValueFact& fact = *next;
    // Facts are in the order of execution. A place that was not executed is an interrupted one.
    const auto found = std::find(pcs.begin() + static_cast<std::ptrdiff_t>(at), pcs.end(), fact.pc);
    if (found == pcs.end()) continue;
    at = static_cast<std::size_t>(found - pcs.begin());
    const std::size_t step = first_of(block) + at;
    if (step < begin || step >= end) continue;
    out.facts.push_back({step - begin, fact.kind, fact.value});
  }
}

void StepIndex::add_interrupted_facts(std::uint64_t block, TraceeAddr interrupted,
                                      values::Window& out) {
  const auto first = std::ranges::lower_bound(facts_, block, {}, &ValueFact::record);
  const auto last = std::ranges::upper_bound(facts_, block, {}, &ValueFact::record);
  // The flags come first. What is older may have been recorded before the instruction began.
  const auto newest = std::find_if(
      std::make_reverse_iterator(last), std::make_reverse_iterator(first),
      [&](const auto& fact) { return fact.pc == interrupted && fact.kind == arch::kFlagsKind; });
  if (newest == std::make_reverse_iterator(first)) return;
  const std::size_t signal = out.events.size() - 1;
  for (auto fact = std::prev(newest.base()); fact != last && fact->pc == interrupted; ++fact) {
    out.facts.push_back({out.events.back().before, fact->kind, fact->value, signal});
  }
}

void StepIndex::add_block(std::uint64_t block, std::size_t begin, std::size_t end,
                          values::Window& out) {
  const std::size_t first = first_of(block);
  const Record begins = records_.at(block);
  const Timeline::Block& here = timeline_.block(block);
  const auto event = [&](std::size_t step, EventKind kind, TraceeAddr interrupted) {
    // An event before the first step belongs to the previous window.
    if (step > begin && step <= end) out.events.push_back({step - begin, kind, interrupted});
  };
  const std::size_t events = out.events.size();
  if (begins.kind == RecordKind::kAsync) event(first, EventKind::kSignal, begins.from);
  if (out.events.size() != events) {
    out.events.back().code = timeline_.executed(block - 1, begins.from);
    add_interrupted_facts(block - 1, begins.from, out);
  }
  if (here.after_gap) event(first, EventKind::kGap, TraceeAddr{});
  // After an instruction that is not told, the next one may not begin where it seems to.
  bool is_told = true;
  for (std::size_t i = 0; i < here.pcs.size(); ++i) {
    const std::size_t step = first + i;
    const bool last = i + 1 == here.pcs.size();
    // The record names the place of the last one.
    is_told = is_told || (last && !here.complete);
    const ExecutedInsn* code = is_told ? timeline_.executed(block, here.pcs[i]) : nullptr;
    is_told = code != nullptr;
    if (last && !here.complete) event(step, EventKind::kGap, TraceeAddr{});
    if (step < begin || step >= end) continue;
    out.steps.push_back({here.pcs[i], last ? TraceeAddr{} : here.pcs[i + 1], code});
  }
  // The missing instructions are just before the thread's own place, or nothing of the block is
  // known.
  if (!here.complete && (block == newest_ || here.pcs.empty())) {
    event(first + here.pcs.size(), EventKind::kGap, TraceeAddr{});
  }
}

values::Window StepIndex::window(std::size_t begin, std::size_t end) {
  values::Window out;
  out.end_pc = place(end).pc;
  const auto at = std::ranges::lower_bound(from_end_, steps_ - begin);
  std::uint64_t block = newest_ - static_cast<std::uint64_t>(at - from_end_.begin());
  for (; block <= newest_ && first_of(block) <= end; ++block) {
    add_block(block, begin, end, out);
    add_facts(block, begin, end, out);
  }
  if (changed_ && *changed_ > begin && *changed_ <= end) {
    const values::Event change{*changed_ - begin, EventKind::kGap, TraceeAddr{}};
    out.events.insert(
        std::ranges::upper_bound(out.events, change.before, {}, &values::Event::before), change);
  }
  // The address after the last instruction of a block is known only once the next block is.
  for (std::size_t i = 0; i < out.steps.size(); ++i) {
    out.steps[i].next = i + 1 < out.steps.size() ? out.steps[i + 1].pc : out.end_pc;
  }
  // An event between two instructions hides where the first one went by itself, except the first of
  // several events: a second signal interrupts the first one's handler.
  std::size_t last = 0;
  for (const values::Event& event : out.events) {
    if (event.before == last || event.before > out.steps.size()) continue;
    last = event.before;
    out.steps[event.before - 1].next =
        event.kind == EventKind::kSignal ? event.interrupted : TraceeAddr{};
  }
  return out;
}

}  // namespace backtrail::decoder
