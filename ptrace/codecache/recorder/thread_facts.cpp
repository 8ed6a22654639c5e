// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/thread_facts.hpp"

#include <utility>

#include "ptrace/codecache/recorder/thread_log.hpp"
#include "ptrace/codecache/recorder/thread_part.hpp"

namespace backtrail::tracee::cache {

void ThreadFacts::begin_log() {
  if (std::exchange(tells_steps_, false)) step_facts_.forget();
  memory_told_ = {};
}

void ThreadFacts::begin_program() {
  tells_steps_ = false;
  steps_without_log_ = 0;
  call_facts_.forget();
  signal_facts_.forget();
}

void ThreadFacts::forget() {
  if (tells_steps_) step_facts_.forget();
  memory_told_ = {};
}

void ThreadFacts::enter() {
  tell_memory();
  has_run_ = true;
}

void ThreadFacts::begin_call(const arch::cpu::UserRegs& regs) {
  if (values_ != ValueDepth::kFree) add(call_facts_.begin(regs));
}

void ThreadFacts::begin_signal(Thread& thread) {
  if (values_ != ValueDepth::kFree) signal_facts_.begin(thread);
}

/// Most threads take a few steps before they get a log. To look at mappings for these would cost
/// more than they do.
void ThreadFacts::begin_step(bool for_good) {
  constexpr unsigned kFewSteps = 64;
  has_run_ = true;
  if (log_.is_open()) return;
  tells_steps_ = tells_steps_ || for_good || ++steps_without_log_ > kFewSteps;
  if (tells_steps_) {
    step_facts_.resume();
  } else {
    step_facts_.resume_untold();
  }
}

void ThreadFacts::stop(Thread& thread) {
  if (values_ == ValueDepth::kFree) return;
  add(call_facts_.end(thread));
  signal_facts_.stop(thread);
}

void ThreadFacts::executed(TraceeAddr pc, const decoder::ExecutedInsn& insn) {
  if (log_.is_open()) {
    if (part_.space().keeps_code(pc)) log_.add_stepped(pc, insn);
  } else if (tells_steps_) {
    step_facts_.executed(pc, insn);
  }
}

bool ThreadFacts::is_told_delivery(const decoder::Record& record) const {
  return log_.is_open() && record.kind == decoder::RecordKind::kAsync && signal_facts_.waits();
}

void ThreadFacts::before(const decoder::Record& record) {
  if (!log_.is_open()) step_facts_.push(record);
  if (is_told_delivery(record)) add(signal_facts_.before(record));
}

void ThreadFacts::after(const decoder::Record& record) {
  if (is_told_delivery(record)) add(signal_facts_.after(record));
}

void ThreadFacts::tell_memory() {
  add(part_.space().constant().tell(memory_told_,
                                    has_run_ ? arch::kBecomesConstantKind : arch::kConstantKind));
}

void ThreadFacts::tell_lost_memory() {
  if (log_.is_open()) add(part_.space().constant().tell_lost(memory_told_));
}

void ThreadFacts::flush() {
  if (log_.is_open() && !part_.inside()) {
    tell_memory();
    add(part_.space().constant().all(arch::kBecomesConstantKind));
  }
  if (tells_steps_) step_facts_.flush();
}

void ThreadFacts::add(const std::vector<decoder::ValueFact>& facts) {
  if (log_.is_open()) log_.add_facts(facts);
}

}  // namespace backtrail::tracee::cache
