// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/block_writer.hpp"

#include <utility>

namespace backtrail::arch::x86::translate {
namespace {

/// Values that are stored before they are counted: their number fits the packed pc map.
constexpr std::size_t kMostUncounted = 15;

/// Returns an empty superblock that has the memory of another one.
Superblock emptied(Superblock&& other) {
  Superblock block;
  const auto take = [](auto& into, auto& from) {
    into = std::move(from);
    into.clear();
  };
  take(block.code, other.code);
  take(block.pc_map, other.pc_map);
  take(block.exits, other.exits);
  take(block.branches, other.branches);
  take(block.ranges, other.ranges);
  take(block.native, other.native);
  take(block.returns, other.returns);
  take(block.pointers, other.pointers);
  take(block.values, other.values);
  return block;
}

}  // namespace

BlockWriter::BlockWriter(TraceeAddr start, const TranslateOptions& options)
    : options_{options},
      block_{options.reused != nullptr ? emptied(std::move(*options.reused)) : Superblock{}},
      emit_{options.address} {
  block_.start = start;
  block_.address = options.address;
  // Most superblocks take no more.
  emit_.reserve(options.max_bytes / 2, std::move(block_.code));
  block_.pc_map.reserve(3UL * options.max_instructions);
  block_.exits.reserve(options.max_exits);
}

Superblock BlockWriter::finish() {
  emit_.finish();
  block_.code = emit_.take();
  return std::move(block_);
}

void BlockWriter::mark(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  const std::uint32_t offset = emit_.offset();
  const bool replaces = !block_.pc_map.empty() && block_.pc_map.back().offset == offset;
  // The entry is made in its place: a copy would wait for the stores of its small fields.
  PcMapEntry& map_entry = replaces ? block_.pc_map.back() : block_.pc_map.emplace_back();
  map_entry.offset = offset;
  map_entry.pc = pc;
  map_entry.stack_add = stack_add;
  map_entry.passed = passed_;
  map_entry.flags = static_cast<std::uint8_t>(more_flags | places_.flags());
  map_entry.values = places_.values;
  map_entry.is_recording = places_.is_recording;
}

void BlockWriter::open_r10(TraceeAddr pc) {
  if (places_.r10_live) return;
  close_r10(pc);
  mark(pc);
  emit_.load(Gpr::kR10, Slot::kR10);
  places_.r10_live = true;
  places_.r10_dirty = false;
}

void BlockWriter::close_r10(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  count_values(pc, more_flags, stack_add);
  places_.values_in_r10 = false;
  if (!places_.r10_live) return;
  mark(pc, more_flags, stack_add);
  if (places_.r10_dirty) emit_.store(Slot::kR10, Gpr::kR10);
  places_.r10_live = false;
}

void BlockWriter::open_r11(TraceeAddr pc) {
  if (places_.r11_live) return;
  save_log(pc);
  mark(pc);
  emit_.load(Gpr::kR11, Slot::kR11);
  places_.r11_live = true;
  places_.r11_dirty = false;
}

void BlockWriter::close_r11(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  if (places_.r11_live && places_.r11_dirty) {
    mark(pc, more_flags, stack_add);
    emit_.store(Slot::kR11, Gpr::kR11);
  }
  places_.r11_live = false;
  if (!places_.log_in_slot) return;
  mark(pc, more_flags, stack_add);
  emit_.load(Gpr::kR11, Slot::kLog);
  places_.log_in_slot = false;
}

void BlockWriter::open_rcx(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  if (!places_.rcx_in_slot) return;
  mark(pc, more_flags, stack_add);
  emit_.load(Gpr::kRcx, Slot::kRcx);
  places_.rcx_in_slot = false;
}

void BlockWriter::close_rcx(TraceeAddr pc, std::int32_t stack_add) {
  if (places_.rcx_in_slot) return;
  mark(pc, 0, stack_add);
  emit_.store(Slot::kRcx, Gpr::kRcx);
  places_.rcx_in_slot = true;
  mark(pc, 0, stack_add);
}

void BlockWriter::save_log(TraceeAddr pc) {
  if (places_.log_in_slot) return;
  mark(pc);
  emit_.store(Slot::kLog, Gpr::kR11);
  places_.log_in_slot = true;
}

void BlockWriter::put_r11_away(TraceeAddr pc) {
  if (places_.r11_live && places_.r11_dirty) {
    mark(pc);
    emit_.store(Slot::kR11, Gpr::kR11);
  }
  places_.r11_live = false;
}

void BlockWriter::note_translated(const SourceInsn& insn) {
  ++block_.instructions;
  if (!block_.ranges.empty() && block_.ranges.back().second == insn.pc) {
    block_.ranges.back().second = insn.next();
  } else {
    block_.ranges.emplace_back(insn.pc, insn.next());
  }
  if (!options_.keeps_code) return;
  block_.native.insert(block_.native.end(), insn.view().begin(), insn.view().end());
}

void BlockWriter::open_values(TraceeAddr pc, std::size_t more) {
  if (places_.values + more > kMostUncounted) count_values(pc);
  if (places_.values_in_r10) return;
  close_r10(pc);
  mark(pc);
  emit_.load16(Gpr::kR10, Memory::of(Slot::kValues));
  places_.values_in_r10 = true;
}

void BlockWriter::note_counted(TraceeAddr pc, ValueKind kind) {
  block_.values.push_back({.pc = pc, .offset = offset(), .passed = passed_, .kind = kind});
  ++values_;
}

void BlockWriter::count_values(TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  if (places_.values == 0) return;
  mark(pc, more_flags, stack_add);
  emit_.lea32(Gpr::kR10, Memory::at(Gpr::kR10, static_cast<std::int8_t>(places_.values)));
  emit_.store16(Memory::of(Slot::kValues), Gpr::kR10);
  places_.values = 0;
  mark(pc, more_flags, stack_add);
}

void BlockWriter::push_return(const SourceInsn& call) {
  mark(call.pc);
  emit_.push(call.next().value());
  block_.returns.push_back(call.next());
}

void BlockWriter::give_id(Exit& exit) const {
  exit.id = options_.first_exit + static_cast<std::uint32_t>(block_.exits.size());
  if (exit.passed == 0) exit.passed = passed_;
  exit.values = values_;
  if (exit.executed == 0 && exit.kind != ExitKind::kStale) {
    const bool ends_with_it = exit.kind == ExitKind::kDirect || exit.kind == ExitKind::kIndirect;
    exit.executed = static_cast<std::uint16_t>(block_.instructions + (ends_with_it ? 1 : 0));
  }
}

void BlockWriter::log(Exit& exit) {
  give_id(exit);
  emit_.log_entry(exit.id);
}

void BlockWriter::exit(Exit exit, TraceeAddr pc, std::uint8_t more_flags, std::int32_t stack_add) {
  close_r10(pc, more_flags, stack_add);
  close_r11(pc, more_flags, stack_add);
  open_rcx(pc, more_flags, stack_add);
  mark(pc, more_flags, stack_add);
  log(exit);
  mark(exit.to, kCommitted);
  exit.link_offset = emit_.jump(options_.miss);
  if (exit.kind == ExitKind::kUntranslatable) exit.link_offset = 0;
  add_exit(exit);
}

void BlockWriter::index_table() {
  if (options_.table_index == TableIndex::kMasked) {
    emit_.extract_r10_to_rcx(options_.table + kEntryTableBytes +
                             static_cast<std::uint32_t>(Policy::kIndexMask));
  } else {
    emit_.move16(Gpr::kRcx, Gpr::kR10);
  }
}

void BlockWriter::exit_indirectly(TraceeAddr from, std::int32_t stack_add, std::uint16_t executed) {
  close_r11(from, 0, stack_add);
  close_rcx(from, stack_add);
  mark(from, 0, stack_add);
  index_table();
  Exit exit{.kind = ExitKind::kIndirect, .executed = executed, .from = from};
  log(exit);
  mark(from, kCommitted | kTargetInR10);
  emit_.jump(Memory::entry(options_.table, Gpr::kRcx));
  add_exit(exit);
}

}  // namespace backtrail::arch::x86::translate
