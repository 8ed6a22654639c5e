// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/step_facts.hpp"

#include "arch/base/value_kind.hpp"

namespace backtrail::tracee {

void StepFacts::add(const std::vector<decoder::ValueFact>& facts) {
  for (const decoder::ValueFact& fact : facts) batch_.add(fact, batch_.pushed());
}

void StepFacts::add_code() {
  code_->hand_on(facts_);
  for (const decoder::ValueFact& fact : facts_) batch_.add(fact, fact.record);
  facts_.clear();
}

void StepFacts::resume() {
  // Facts follow a record.
  if (batch_.pushed() != 0) {
    add(memory_.tell_memory(has_run_ ? arch::kBecomesConstantKind : arch::kConstantKind));
  }
  has_run_ = true;
}

void StepFacts::executed(TraceeAddr pc, const decoder::ExecutedInsn& insn) {
  code_->step(pc, insn.view(), batch_.pushed());
  add_code();
}

void StepFacts::push(const decoder::Record& record) {
  code_->take(record, batch_.pushed());
  add_code();
  if (record.kind != decoder::RecordKind::kGap || record.reason != decoder::GapReason::kExec) {
    return;
  }
  memory_.forget_told();
  has_run_ = false;
}

void StepFacts::flush() {
  code_->expect_reader();
  add(memory_.tell_memory(arch::kBecomesConstantKind));
  add(memory_.tell_all_memory());
}

void StepFacts::forget() {
  memory_.forget_told();
  code_.emplace(exits_);
  constexpr decoder::ValueFact kNothingKnown{0, TraceeAddr{}, ~std::uint64_t{0}, arch::kCodeKind};
  batch_.add(kNothingKnown, batch_.pushed());
}

}  // namespace backtrail::tracee
