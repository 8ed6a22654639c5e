// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/frame_pairs.hpp"

#include <algorithm>

#include "arch/insn.hpp"

namespace backtrail::decoder::values {
namespace {

using cpu::InsnModel;
using cpu::Ref;

bool is_slot(Ref ref, Slot slot) {
  return ref.kind == Ref::Kind::kSlot && ref.index == slot;
}

/// Returns true if the stack pointer is unchanged, or is computed from itself or the frame pointer.
bool moves_stack_regularly(const InsnModel& model) {
  const auto found = std::find_if(model.definitions.begin(), model.definitions.end(),
                                  [](const auto& d) { return d.slot == cpu::kRsp; });
  if (found == model.definitions.end() || is_slot(found->ref, cpu::kRbp)) return true;
  return std::any_of(model.ops.begin(), model.ops.end(), [&](const cpu::MicroOp& op) {
    if (op.op != cpu::Op::kAdd && op.op != cpu::Op::kAnd) return false;
    const auto mentions = [&op](auto&& what) {
      return std::any_of(op.refs.begin(), op.refs.end(), what);
    };
    return mentions([&](Ref r) { return r == found->ref; }) &&
           mentions([](Ref r) { return is_slot(r, cpu::kRsp) || is_slot(r, cpu::kRbp); });
  });
}

bool is_call(const InsnModel& model, TraceeAddr behind) {
  return std::any_of(model.accesses.begin(), model.accesses.end(), [&](const auto& access) {
    return access.kind == cpu::AccessKind::kStore && is_slot(access.base, cpu::kRsp) &&
           access.value.kind == Ref::Kind::kConstant &&
           model.constants[access.value.index] == behind.value();
  });
}

bool is_return(const InsnModel& model) {
  return std::any_of(model.accesses.begin(), model.accesses.end(), [](const auto& access) {
    return access.kind == cpu::AccessKind::kLoad && is_slot(access.base, cpu::kRsp) &&
           access.value.kind == Ref::Kind::kNextPc;
  });
}

}  // namespace

std::vector<FramePair> frame_pairs(const Window& window, std::size_t begin, ModelCache& models) {
  struct Open {
    std::size_t call;
    TraceeAddr behind;
  };
  std::vector<FramePair> pairs;
  std::vector<Open> open;
  auto event = window.events.begin();
  for (std::size_t i = begin; i < window.steps.size(); ++i) {
    for (; event != window.events.end() && event->before <= i; ++event) open.clear();
    const Step& step = window.steps[i];
    const InsnModel& model = models.of(step);
    const TraceeAddr behind = step.pc + model.length;
    if (!moves_stack_regularly(model)) {
      open.clear();
    } else if (is_call(model, behind)) {
      open.push_back({i, behind});
    } else if (is_return(model)) {
      if (!open.empty() && open.back().behind == step.next) {
        pairs.push_back({open.back().call, i});
        open.pop_back();
      } else {
        open.clear();
      }
    }
  }
  return pairs;
}

}  // namespace backtrail::decoder::values
