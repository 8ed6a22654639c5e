// SPDX-License-Identifier: Apache-2.0
// Exits of a superblock.

#include "arch/x86/translate/builder.hpp"

namespace backtrail::arch::x86::translate {

void Builder::add_side_exit(const SourceInsn& insn, std::uint8_t more_flags) {
  side_exits_.push_back(
      {.rel32 = emit_.open_rel32(),
       .insn = insn,
       .passed = static_cast<std::uint16_t>(block_.branches.size()),
       .executed = static_cast<std::uint16_t>(block_.instructions + 1),
       .state = static_cast<std::uint8_t>((r10_live_ ? kR10Live : 0) | (r11_live_ ? kR11Live : 0) |
                                          (log_in_slot_ ? kLogInSlot : 0) |
                                          (rcx_in_slot_ ? kRcxInSlot : 0) | more_flags),
       .r10_dirty = r10_dirty_,
       .r11_dirty = r11_dirty_});
}

void Builder::give_id(Exit& exit) const {
  exit.id = options_.first_exit + static_cast<std::uint32_t>(block_.exits.size());
  if (exit.passed == 0) exit.passed = static_cast<std::uint16_t>(block_.branches.size());
  if (exit.executed == 0 && exit.kind != ExitKind::kStale) {
    const bool ends_with_it = exit.kind == ExitKind::kDirect || exit.kind == ExitKind::kIndirect;
    exit.executed = static_cast<std::uint16_t>(block_.instructions + (ends_with_it ? 1 : 0));
  }
}

void Builder::log(Exit& exit) {
  give_id(exit);
  emit_.log_store(exit.id);
  emit_.log_advance();
}

void Builder::emit_exit(Exit exit, TraceeAddr pc, std::uint8_t more_flags) {
  close_r10(pc, more_flags);
  close_r11(pc, more_flags);
  open_rcx(pc, more_flags);
  mark(pc, more_flags);
  log(exit);
  mark(exit.to, kCommitted);
  exit.link_offset = emit_.jump(options_.miss);
  if (exit.kind == ExitKind::kUntranslatable) exit.link_offset = 0;
  block_.exits.push_back(exit);
}

void Builder::emit_side_exits() {
  for (SideExit& side : side_exits_) {
    emit_.bind(side.rel32);
    r10_live_ = (side.state & kR10Live) != 0;
    r11_live_ = (side.state & kR11Live) != 0;
    log_in_slot_ = (side.state & kLogInSlot) != 0;
    rcx_in_slot_ = (side.state & kRcxInSlot) != 0;
    r10_dirty_ = side.r10_dirty;
    r11_dirty_ = side.r11_dirty;
    // The pc map entries of this exit count only the branches taken before it.
    std::vector<Branch> later{block_.branches.begin() + side.passed, block_.branches.end()};
    block_.branches.resize(side.passed);
    if (side.is_indirect) {
      finish_indirect(side.insn.pc, side.stack_add, side.executed);
    } else if (side.failed_call) {
      emit_failed_call(side);
    } else if (side.falls_through) {
      emit_exit({.kind = ExitKind::kContinue, .executed = side.executed, .to = side.insn.next()},
                side.insn.next());
    } else {
      emit_exit({.kind = ExitKind::kDirect,
                 .executed = side.executed,
                 .from = side.insn.pc,
                 .to = side.insn.target},
                side.insn.pc, static_cast<std::uint8_t>(side.state & kRcxPlusOne));
    }
    block_.branches.insert(block_.branches.end(), later.begin(), later.end());
  }
}

}  // namespace backtrail::arch::x86::translate
