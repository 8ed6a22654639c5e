// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/builder.hpp"

#include <algorithm>

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kJumpIfRcxZero = 0xe3;
constexpr std::uint8_t kJumpIfEqual = 0x74;
constexpr std::uint8_t kJumpIfNotEqual = 0x75;
constexpr std::uint8_t kLoopWhileNotEqual = 0xe0;
constexpr std::uint8_t kLoopWhileEqual = 0xe1;
/// Loops of at most kMostUnrolled instructions are unrolled, up to kMostCopies iterations.
constexpr std::uint32_t kMostUnrolled = 32;
constexpr std::ptrdiff_t kMostCopies = 8;
/// All code of a superblock is within about this distance of its start.
constexpr std::uint64_t kFarthest = 1ULL << 30;

}  // namespace

Builder::Builder(const CodeSource& source, TraceeAddr start, const TranslateOptions& options)
    : source_{source}, options_{options}, emit_{options.address}, pc_{start} {
  block_.start = start;
  block_.address = options.address;
  // Most superblocks take no more.
  emit_.reserve(options.max_bytes / 2);
  block_.pc_map.reserve(3UL * options.max_instructions);
  block_.exits.reserve(options.max_exits);
  side_exits_.reserve(options.max_exits);
  seen_.reserve(options.max_instructions);
}

SourceInsn Builder::fetch(TraceeAddr pc) const {
  std::array<std::uint8_t, kMaxInsnBytes> bytes{};
  const std::size_t available = source_.read(pc, bytes);
  const auto there = std::span{bytes}.first(available);
  return source_.decoded != nullptr ? source_.decoded->decode(pc, there) : decode_source(pc, there);
}

SourceInsn Builder::examine(TraceeAddr pc) const {
  SourceInsn insn = fetch(pc);
  if (insn.names && source_.named) source_.named(*insn.names);
  // The store that announces a critical section to the kernel belongs to it.
  if (source_.section_at && source_.section_at(insn.next())) {
    insn.kind = InsnClass::kUntranslatable;
    insn.reason = UntranslatableReason::kSection;
  }
  return insn;
}

bool Builder::limits_reached() const {
  return block_.instructions >= options_.max_instructions ||
         side_exits_.size() + 1 >= options_.max_exits || emit_.offset() >= options_.max_bytes;
}

bool Builder::joins() const {
  return source_.joined_at && !options_.checked && block_.ranges.back().second == pc_ &&
         source_.joined_at(pc_);
}

bool Builder::is_left_to_another(const SourceInsn& insn) const {
  if (!options_.saves_memory) return false;
  return insn.kind == InsnClass::kCall || (source_.joined_at && source_.joined_at(insn.target));
}

bool Builder::may_follow(TraceeAddr target) const {
  const bool is_near = target - block_.start + kFarthest < 2 * kFarthest;
  return is_near && !options_.checked && !limits_reached() && !source_.stop_before(target) &&
         std::count(seen_.begin(), seen_.end(), target) < copies_;
}

bool Builder::may_unroll(const SourceInsn& insn) const {
  if (options_.checked || insn.target > insn.pc || limits_reached() || copies_ >= kMostCopies)
    return false;
  const auto last = std::find(seen_.rbegin(), seen_.rend(), insn.target);
  if (last == seen_.rend() || source_.stop_before(insn.target)) return false;
  const auto body = static_cast<std::uint32_t>(last - seen_.rbegin()) + 1;
  // The copy must fit: otherwise a superblock would be made for each start within the loop.
  return body <= kMostUnrolled && block_.instructions + body < options_.max_instructions;
}

std::variant<Superblock, UntranslatableReason> Builder::build() {
  if (options_.checked) {
    if (const UntranslatableReason why = scan(); why != UntranslatableReason::kNone) return why;
  }
  if (options_.conflict) emit_ib_entry();
  if (options_.checked) emit_check();
  for (;;) {
    const bool first = block_.instructions == 0;
    if (!first && (scanned_all() || limits_reached() || source_.stop_before(pc_) || joins())) {
      emit_exit({.kind = ExitKind::kContinue, .to = pc_}, pc_);
      break;
    }
    const SourceInsn insn = options_.checked ? scanned_[block_.instructions] : examine(pc_);
    if (insn.kind == InsnClass::kUntranslatable && first) return insn.reason;
    if (insn.kind == InsnClass::kUntranslatable) {
      emit_exit({.kind = ExitKind::kUntranslatable, .reason = insn.reason, .to = pc_}, pc_);
      break;
    }
    seen_.push_back(pc_);
    const bool goes_on = step(insn);
    // No code was emitted: the instruction is left to the CPU.
    if (block_.instructions == 0) return left_for_;
    if (!goes_on) break;
  }
  emit_side_exits();
  emit_stale_exit();
  emit_.finish();
  block_.code = emit_.take();
  return std::move(block_);
}

bool Builder::step(const SourceInsn& insn) {
  pc_ = insn.next();
  if (insn.uses_rcx) open_rcx(insn.pc);
  bool goes_on = true;
  auto made = CallMade::kNot;
  const auto leave_to_cpu = [&](UntranslatableReason why) {
    left_for_ = why;
    if (block_.instructions != 0) {
      emit_exit({.kind = ExitKind::kUntranslatable, .reason = why, .to = insn.pc}, insn.pc);
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
      goes_on = indirect(insn);
      break;
    case InsnClass::kReturn:
      goes_on = return_from(insn);
      break;
    case InsnClass::kSystemCall:
      block_.calls = true;
      made = system_call(insn);
      if (made == CallMade::kNot) return leave_to_cpu(UntranslatableReason::kSystemCall);
      break;
  }
  if (insn.sets_eax_to) {
    eax_ = insn.sets_eax_to;
  } else if (insn.writes_rax || insn.kind == InsnClass::kSystemCall) {
    eax_.reset();
  }
  if (insn.kind == InsnClass::kLoadAddress && insn.destination == 0) eax_.reset();
  ++block_.instructions;
  note_range(insn);
  if (made == CallMade::kDoesNot) return false;
  if (made == CallMade::kComesBack) {
    // The call may block for long, and the code after it may change meanwhile: an exit leads to the
    // translation that is current then.
    emit_exit({.kind = ExitKind::kContinue, .to = pc_}, pc_);
    return false;
  }
  return goes_on;
}

void Builder::note_range(const SourceInsn& insn) {
  if (!block_.ranges.empty() && block_.ranges.back().second == insn.pc) {
    block_.ranges.back().second = insn.next();
  } else {
    block_.ranges.emplace_back(insn.pc, insn.next());
  }
}

void Builder::mark(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  const auto if_set = [](bool on, StateFlag flag) { return on ? unsigned{flag} : 0U; };
  const unsigned flags = more_flags | if_set(r10_live_, kR10Live) | if_set(r11_live_, kR11Live) |
                         if_set(log_in_slot_, kLogInSlot) | if_set(rcx_in_slot_, kRcxInSlot);
  const PcMapEntry map_entry{.offset = emit_.offset(),
                             .pc = pc,
                             .stack_add = stack_add,
                             .passed = static_cast<std::uint16_t>(block_.branches.size()),
                             .flags = static_cast<std::uint8_t>(flags)};
  if (!block_.pc_map.empty() && block_.pc_map.back().offset == map_entry.offset) {
    block_.pc_map.back() = map_entry;
  } else {
    block_.pc_map.push_back(map_entry);
  }
}

void Builder::open_r10(TraceeAddr pc) {
  if (r10_live_) return;
  mark(pc);
  emit_.load(Gpr::kR10, Slot::kR10);
  r10_live_ = true;
  r10_dirty_ = false;
}

void Builder::close_r10(TraceeAddr pc, std::uint8_t more_flags) {
  if (!r10_live_) return;
  mark(pc, more_flags);
  if (r10_dirty_) emit_.store(Slot::kR10, Gpr::kR10);
  r10_live_ = false;
}

void Builder::open_rcx(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  if (!rcx_in_slot_) return;
  mark(pc, more_flags, stack_add);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  rcx_in_slot_ = false;
}

void Builder::put_rcx_away(TraceeAddr pc, std::int32_t stack_add) {
  if (rcx_in_slot_) return;
  mark(pc, 0, stack_add);
  emit_.store(Slot::kRcx, Gpr::kRcx);
  rcx_in_slot_ = true;
  mark(pc, 0, stack_add);
}

void Builder::note_written(const SourceInsn& insn) {
  r10_dirty_ |= insn.writes_r10;
  r11_dirty_ |= insn.writes_r11;
  if (insn.sets_rcx) rcx_in_slot_ = false;
}

void Builder::save_log(TraceeAddr pc) {
  if (log_in_slot_) return;
  mark(pc);
  emit_.store(Slot::kLog, Gpr::kR11);
  log_in_slot_ = true;
}

void Builder::open_r11(TraceeAddr pc) {
  if (r11_live_) return;
  save_log(pc);
  mark(pc);
  emit_.load(Gpr::kR11, Slot::kR11);
  r11_live_ = true;
  r11_dirty_ = false;
}

void Builder::close_r11(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  if (r11_live_ && r11_dirty_) {
    mark(pc, more_flags, stack_add);
    emit_.store(Slot::kR11, Gpr::kR11);
  }
  r11_live_ = false;
  if (!log_in_slot_) return;
  mark(pc, more_flags, stack_add);
  emit_.load(Gpr::kR11, Slot::kLog);
  log_in_slot_ = false;
}

void Builder::copy(const SourceInsn& insn) {
  if (insn.uses_r10) open_r10(insn.pc);
  if (insn.uses_r11) open_r11(insn.pc);
  mark(insn.pc);
  emit_.bytes(insn.view());
  note_written(insn);
}

bool Builder::copy_relative(const SourceInsn& insn) {
  // The registers are loaded first, because the distance counts from the end of the copied
  // instruction.
  constexpr std::uint64_t kOpeningBytes = 64;
  const std::uint64_t distance = insn.target - (emit_.here() + insn.length);
  const bool reachable = fits_int32(distance) && fits_int32(distance - kOpeningBytes);
  if (reachable) {
    if (insn.uses_r10) open_r10(insn.pc);
    if (insn.uses_r11) open_r11(insn.pc);
    mark(insn.pc);
    const std::uint32_t at = emit_.offset();
    const auto field = static_cast<std::uint32_t>(insn.target - (emit_.here() + insn.length));
    emit_.bytes(insn.view().first(insn.displacement_offset));
    emit_.word32(field);
    emit_.bytes(insn.view().subspan(emit_.offset() - at));
    note_written(insn);
    return true;
  }
  if (insn.uses_r10 && insn.uses_r11) return false;
  const bool through_r11 = insn.uses_r10;
  const auto rebased = rebase(insn, through_r11);
  if (!rebased) return false;
  if (through_r11) {
    open_r10(insn.pc);
    save_log(insn.pc);
    if (r11_live_ && r11_dirty_) {
      mark(insn.pc);
      emit_.store(Slot::kR11, Gpr::kR11);
    }
    r11_live_ = false;
  } else {
    if (insn.uses_r11) open_r11(insn.pc);
    close_r10(insn.pc);
  }
  mark(insn.pc);
  emit_.move(through_r11 ? Gpr::kR11 : Gpr::kR10, insn.target.value());
  emit_.bytes(std::span{rebased->bytes}.first(rebased->length));
  note_written(insn);
  if (through_r11) close_r11(insn.next());
  return true;
}

void Builder::load_address(const SourceInsn& insn) {
  if (insn.uses_r10) open_r10(insn.pc);
  if (insn.uses_r11) open_r11(insn.pc);
  mark(insn.pc);
  const std::uint64_t value =
      insn.destination_bits == 32 ? insn.target.value() & 0xffff'ffffU : insn.target.value();
  emit_.move(static_cast<Gpr>(insn.destination), value);
  note_written(insn);
}

void Builder::conditional_jump(const SourceInsn& insn) {
  // A jump to the instruction after itself has no effect and is not recorded as a branch.
  if (insn.target == insn.next()) return;
  mark(insn.pc);
  const bool likely = goes_likely(insn, insn.target);
  if (!likely && !may_unroll(insn)) {
    emit_.bytes({0x0f, static_cast<std::uint8_t>(0x80U | insn.condition)});
    add_side_exit(insn);
    return;
  }
  // Inverted: the branch leaves if the program's does not jump.
  emit_.bytes({0x0f, static_cast<std::uint8_t>(0x80U | (insn.condition ^ 1U))});
  add_side_exit(insn);
  side_exits_.back().falls_through = true;
  block_.branches.emplace_back(insn.pc, insn.target);
  if (!likely) ++copies_;
  pc_ = insn.target;
}

bool Builder::goes_likely(const SourceInsn& insn, TraceeAddr to) const {
  return source_.likely_target && source_.likely_target(insn.pc) == to && may_follow(to);
}

void Builder::jump_if_rcx_zero(const SourceInsn& insn) {
  if (insn.target == insn.next()) return;
  mark(insn.pc);
  if (insn.address_size_prefix) emit_.bytes({0x67});
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t taken = emit_.open_rel8();
  emit_.bytes({kShortJump});
  const std::uint32_t past = emit_.open_rel8();
  emit_.bind8(taken);
  emit_.bytes({kJump});
  add_side_exit(insn);
  emit_.bind8(past);
}

void Builder::loop(const SourceInsn& insn) {
  mark(insn.pc);
  emit_.bytes({0x48, 0x8d, 0x49, 0xff});  // lea rcx, [rcx-1]
  if (insn.target == insn.next()) return;
  mark(insn.pc, kRcxPlusOne);
  emit_.bytes({kJumpIfRcxZero});
  const std::uint32_t zero = emit_.open_rel8();
  std::optional<std::uint32_t> other;
  if (insn.condition == kLoopWhileEqual || insn.condition == kLoopWhileNotEqual) {
    emit_.bytes({insn.condition == kLoopWhileEqual ? kJumpIfNotEqual : kJumpIfEqual});
    other = emit_.open_rel8();
  }
  emit_.bytes({kJump});
  add_side_exit(insn, kRcxPlusOne);
  emit_.bind8(zero);
  if (other) emit_.bind8(*other);
}

bool Builder::follow(const SourceInsn& insn) {
  if (insn.kind == InsnClass::kCall) {
    mark(insn.pc);
    emit_.push(insn.next().value());
    block_.returns.push_back(insn.next());
  }
  if (may_follow(insn.target) && !is_left_to_another(insn)) {
    block_.branches.emplace_back(insn.pc, insn.target);
    if (insn.kind == InsnClass::kCall) calls_.push_back(insn.next());
    pc_ = insn.target;
    return true;
  }
  const bool pushed = insn.kind == InsnClass::kCall;
  Exit exit{.kind = ExitKind::kDirect, .from = insn.pc, .to = insn.target};
  // Until it is logged, a call has not happened: its push is undone.
  const std::int32_t stack_add = pushed ? 8 : 0;
  if (r10_live_) {
    mark(insn.pc, 0, stack_add);
    if (r10_dirty_) emit_.store(Slot::kR10, Gpr::kR10);
    r10_live_ = false;
  }
  close_r11(insn.pc, 0, stack_add);
  open_rcx(insn.pc, 0, stack_add);
  mark(insn.pc, 0, stack_add);
  log(exit);
  mark(insn.target, kCommitted);
  exit.link_offset = emit_.jump(options_.miss);
  block_.exits.push_back(exit);
  return false;
}

}  // namespace backtrail::arch::x86::translate
