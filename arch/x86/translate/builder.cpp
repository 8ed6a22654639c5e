// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/builder.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kJumpIfRcxZero = 0xe3;
constexpr std::uint8_t kJumpIfEqual = 0x74;
constexpr std::uint8_t kJumpIfNotEqual = 0x75;
constexpr std::uint8_t kLoopWhileNotEqual = 0xe0;
constexpr std::uint8_t kLoopWhileEqual = 0xe1;

}  // namespace

Builder::Builder(const CodeSource& source, TraceeAddr start, const TranslateOptions& options)
    : options_{options},
      writer_{start, options},
      emit_{writer_.emit()},
      side_exits_{writer_, options},
      path_{source, options, writer_, side_exits_},
      check_{writer_},
      values_{writer_, options},
      indirect_{writer_, side_exits_, path_},
      calls_{writer_, side_exits_, values_, options} {}

std::variant<Superblock, UntranslatableReason> Builder::build() {
  if (options_.checked) {
    const UntranslatableReason why = check_.scan(path_);
    if (why != UntranslatableReason::kNone) return why;
  }
  if (options_.conflict) indirect_.entry(*options_.conflict, options_.ib_entry_test);
  if (options_.checked) check_.emit();
  for (;;) {
    const TraceeAddr pc = path_.pc();
    const std::uint32_t instructions = writer_.block().instructions;
    const bool first = instructions == 0;
    if (!first && must_end_before(pc)) {
      writer_.exit({.kind = ExitKind::kContinue, .to = pc}, pc);
      break;
    }
    const SourceInsn insn = options_.checked ? check_.insns()[instructions] : path_.examine(pc);
    if (insn.kind == InsnClass::kUntranslatable && first) return insn.reason;
    if (insn.kind == InsnClass::kUntranslatable) {
      writer_.exit({.kind = ExitKind::kUntranslatable, .reason = insn.reason, .to = pc}, pc);
      break;
    }
    path_.enter();
    const bool goes_on = step(insn);
    // No code was emitted: the instruction is left to the CPU.
    if (writer_.block().instructions == 0) return left_for_;
    if (!goes_on) break;
  }
  writer_.block().side_exits_at = emit_.offset();
  side_exits_.emit();
  check_.emit_stale_exit();
  return writer_.finish();
}

bool Builder::must_end_before(TraceeAddr pc) const {
  const bool checked_all =
      options_.checked && writer_.block().instructions == check_.insns().size();
  return checked_all || path_.limits_reached() || path_.must_stop_before(pc) || path_.joins();
}

bool Builder::step(const SourceInsn& insn) {
  path_.go_to(insn.next());
  if (insn.uses_rcx) writer_.open_rcx(insn.pc);
  bool goes_on = true;
  auto made = CallBuilder::Made::kNot;
  const auto leave_to_cpu = [&](UntranslatableReason why) {
    left_for_ = why;
    if (writer_.block().instructions != 0) {
      writer_.exit({.kind = ExitKind::kUntranslatable, .reason = why, .to = insn.pc}, insn.pc);
    }
    return false;
  };
  switch (insn.kind) {
    case InsnClass::kUntranslatable:
      return false;
    case InsnClass::kCopy:
      if (insn.relative) {
        if (!copy_relative(insn)) return leave_to_cpu(UntranslatableReason::kRegisters);
      } else {
        copy(insn);
      }
      break;
    case InsnClass::kLoadAddress:
      load_address(insn);
      break;
    case InsnClass::kConditionalJump:
      conditional_jump(insn);
      break;
    case InsnClass::kJumpIfRcxZero:
      jump_if_rcx_zero(insn);
      break;
    case InsnClass::kLoop:
      loop(insn);
      break;
    case InsnClass::kJump:
    case InsnClass::kCall:
      goes_on = follow(insn);
      break;
    case InsnClass::kIndirectJump:
    case InsnClass::kIndirectCall:
      goes_on = indirect_.branch(insn);
      break;
    case InsnClass::kReturn:
      goes_on = indirect_.return_from(insn);
      break;
    case InsnClass::kSystemCall:
      writer_.block().calls = true;
      made = calls_.call(insn, eax_);
      if (made == CallBuilder::Made::kNot) return leave_to_cpu(UntranslatableReason::kSystemCall);
      break;
  }
  if (insn.sets_eax_to) {
    eax_ = insn.sets_eax_to;
  } else if (insn.writes_rax || insn.kind == InsnClass::kSystemCall) {
    eax_.reset();
  }
  if (insn.kind == InsnClass::kLoadAddress && insn.destination == 0) eax_.reset();
  writer_.note_translated(insn);
  values_.after(insn);
  if (made == CallBuilder::Made::kDoesNot) return false;
  if (made == CallBuilder::Made::kComesBack) {
    // The call may block for long, and the code after it may change meanwhile: an exit leads to the
    // translation that is current then.
    values_.after_call(path_.pc());
    writer_.exit({.kind = ExitKind::kContinue, .to = path_.pc()}, path_.pc());
    return false;
  }
  return goes_on;
}

/// Continues the superblock at the target of a direct branch.
void Builder::take(const SourceInsn& insn) {
  writer_.take_branch(insn.pc, insn.target);
  path_.go_to(insn.target);
}

void Builder::copy(const SourceInsn& insn) {
  values_.before(insn);
  writer_.open_for(insn);
  writer_.mark(insn.pc);
  emit_.first_bytes(insn.bytes, insn.length);
  writer_.note_written(insn);
}

bool Builder::copy_relative(const SourceInsn& insn) {
  // The registers are loaded first, because the distance counts from the end of the copied
  // instruction.
  values_.before(insn);
  constexpr std::uint64_t kOpeningBytes = 64;
  const std::uint64_t distance = insn.target - (emit_.here() + insn.length);
  const bool reachable = fits_int32(distance) && fits_int32(distance - kOpeningBytes);
  if (reachable) {
    writer_.open_for(insn);
    writer_.mark(insn.pc);
    const std::uint32_t at = emit_.offset();
    const auto field = static_cast<std::uint32_t>(insn.target - (emit_.here() + insn.length));
    emit_.bytes(insn.view().first(insn.displacement_offset));
    emit_.word32(field);
    emit_.bytes(insn.view().subspan(emit_.offset() - at));
    writer_.note_written(insn);
    return true;
  }
  if (insn.uses_r10 && insn.uses_r11) return false;
  const bool through_r11 = insn.uses_r10;
  const auto rebased = rebase(insn, through_r11);
  if (!rebased) return false;
  if (through_r11) {
    writer_.open_r10(insn.pc);
    writer_.save_log(insn.pc);
    writer_.put_r11_away(insn.pc);
  } else {
    if (insn.uses_r11) writer_.open_r11(insn.pc);
    writer_.close_r10(insn.pc);
  }
  writer_.mark(insn.pc);
  emit_.move(through_r11 ? Gpr::kR11 : Gpr::kR10, insn.target.value());
  emit_.bytes(std::span{rebased->bytes}.first(rebased->length));
  writer_.note_written(insn);
  if (through_r11) writer_.close_r11(insn.next());
  return true;
}

void Builder::load_address(const SourceInsn& insn) {
  writer_.open_for(insn);
  writer_.mark(insn.pc);
  const std::uint64_t value =
      insn.destination_bits == 32 ? insn.target.value() & 0xffff'ffffU : insn.target.value();
  emit_.move(static_cast<Gpr>(insn.destination), value);
  writer_.note_written(insn);
}

void Builder::conditional_jump(const SourceInsn& insn) {
  // A jump to the instruction after itself has no effect and is not recorded as a branch.
  if (insn.target == insn.next()) return;
  writer_.mark(insn.pc);
  const bool likely = path_.goes_likely(insn, insn.target);
  if (!likely && !path_.may_unroll(insn)) {
    emit_.bytes({0x0f, static_cast<std::uint8_t>(0x80U | insn.condition)});
    side_exits_.add(insn);
    return;
  }
  // Inverted: the branch leaves if the program's does not jump.
  emit_.bytes({0x0f, static_cast<std::uint8_t>(0x80U | (insn.condition ^ 1U))});
  side_exits_.add(insn).falls_through = true;
  take(insn);
  if (!likely) path_.unroll();
}

void Builder::jump_if_rcx_zero(const SourceInsn& insn) {
  if (insn.target == insn.next()) return;
  writer_.mark(insn.pc);
  if (insn.address_size_prefix) emit_.bytes({0x67});
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t taken = emit_.open_rel8();
  emit_.bytes({kShortJump});
  const std::uint32_t past = emit_.open_rel8();
  emit_.bind8(taken);
  emit_.bytes({kJump});
  side_exits_.add(insn);
  emit_.bind8(past);
}

void Builder::loop(const SourceInsn& insn) {
  writer_.mark(insn.pc);
  emit_.lea(Gpr::kRcx, Memory::at(Gpr::kRcx, -1));
  if (insn.target == insn.next()) return;
  writer_.mark(insn.pc, kRcxPlusOne);
  const std::uint32_t zero = emit_.jump_if_rcx_zero();
  std::optional<std::uint32_t> other;
  if (insn.condition == kLoopWhileEqual || insn.condition == kLoopWhileNotEqual) {
    emit_.bytes({insn.condition == kLoopWhileEqual ? kJumpIfNotEqual : kJumpIfEqual});
    other = emit_.open_rel8();
  }
  emit_.bytes({kJump});
  side_exits_.add(insn, kRcxPlusOne);
  emit_.bind8(zero);
  if (other) emit_.bind8(*other);
}

bool Builder::follow(const SourceInsn& insn) {
  const bool is_call = insn.kind == InsnClass::kCall;
  if (is_call) writer_.push_return(insn);
  if (path_.may_follow(insn.target) && !path_.is_left_to_another(insn)) {
    take(insn);
    if (is_call) path_.enter_call(insn.next());
    return true;
  }
  // Until it is logged, a call has not happened: its push is undone.
  const std::int32_t stack_add = is_call ? 8 : 0;
  writer_.exit({.kind = ExitKind::kDirect, .from = insn.pc, .to = insn.target}, insn.pc, 0,
               stack_add);
  return false;
}

}  // namespace backtrail::arch::x86::translate
