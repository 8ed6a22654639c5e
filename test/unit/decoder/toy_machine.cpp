// SPDX-License-Identifier: Apache-2.0
#include "test/unit/decoder/toy_machine.hpp"

namespace backtrail::test {

using decoder::GapReason;

ToyMachine::ToyMachine(const ToyProgram& program, Random& random, ToyHabits habits)
    : program_{program}, random_{random}, habits_{habits}, pc_{program.functions().front()} {
  records_.push_back(decoder::gap(GapReason::kStart, {}, pc_));
}

void ToyMachine::arrive(TraceeAddr at) {
  pc_ = at;
  block_begin_ = history_.size();
}

void ToyMachine::branch_to(TraceeAddr to) {
  records_.push_back(decoder::branch(pc_, to));
  arrive(to);
}

void ToyMachine::signal() {
  const TraceeAddr handler = random_function();
  records_.push_back(decoder::async_transfer(pc_, handler));
  interrupted_.push_back(pc_);
  stack_.push_back(program_.restorer());
  arrive(handler);
}

void ToyMachine::gap(GapReason reason, bool from_known, TraceeAddr to) {
  records_.push_back(decoder::gap(reason, from_known ? pc_ : TraceeAddr{}, to));
  // If the end is unknown, instructions since the last record leave no trace.
  if (!from_known) history_.resize(block_begin_);
  const bool lost = reason == GapReason::kOverflow || !from_known || pc_ == to;
  // A stop before the first instruction is not reported.
  if (lost || !history_.empty()) {
    history_.push_back({lost ? IptItem::Kind::kLost : IptItem::Kind::kGap, to.value(), 0});
  }
  arrive(to);
}

void ToyMachine::go_back() {
  TraceeAddr to = random_function();
  const bool wild = habits_.wild_returns != 0 && pick(random_, habits_.wild_returns) == 0;
  if (!stack_.empty()) {
    // A wild return is a longjmp, a coroutine switch, or a jump by `push; ret`.
    if (!wild || pick(random_, 2) == 0) {
      to = stack_.back();
      stack_.pop_back();
    }
    if (wild && !stack_.empty() && pick(random_, 2) == 0) {
      to = stack_.back();
      stack_.pop_back();
    }
  }
  branch_to(to);
}

void ToyMachine::step() {
  if (habits_.signals != 0 && pick(random_, habits_.signals) == 0) signal();
  if (habits_.gaps != 0 && pick(random_, habits_.gaps) == 0) {
    const GapReason reason = pick(random_, 2) == 0 ? GapReason::kOverflow : GapReason::kNotRecorded;
    gap(reason, pick(random_, 2) == 0, pick(random_, 4) == 0 ? pc_ : random_block());
  }
  const ToyInsn& insn = program_.at(pc_);
  history_.push_back({IptItem::Kind::kInsn, pc_.value(), 0});
  switch (insn.kind) {
    case ToyKind::kPop:
      if (!stack_.empty()) stack_.pop_back();
      [[fallthrough]];
    case ToyKind::kPlain:
    case ToyKind::kSystemCall:
      pc_ = insn.behind();
      return;
    case ToyKind::kConditional:
      if (pick(random_, 2) == 0) {
        pc_ = insn.behind();
        return;
      }
      [[fallthrough]];
    case ToyKind::kJump:
      return branch_to(insn.target);
    case ToyKind::kIndirectJump:
      return branch_to(random_block());
    case ToyKind::kCall:
    case ToyKind::kNextCall:
      stack_.push_back(insn.behind());
      return branch_to(insn.target);
    case ToyKind::kIndirectCall:
      stack_.push_back(insn.behind());
      return branch_to(random_function());
    case ToyKind::kReturn:
      return go_back();
    case ToyKind::kSigreturn: {
      TraceeAddr to = random_function();
      if (!interrupted_.empty()) {
        to = interrupted_.back();
        interrupted_.pop_back();
      }
      return branch_to(to);
    }
  }
}

}  // namespace backtrail::test
