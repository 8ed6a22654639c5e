// SPDX-License-Identifier: Apache-2.0
#include "test/unit/arch/x86/translate/compared_stops.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "arch/x86/translate/program_state.hpp"
#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/translate/value_registers.hpp"
#include "test/unit/arch/x86/translate/stepped.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::size_t kRsp = 4;
constexpr std::uint64_t kRedZoneBytes = 128;
constexpr std::uint64_t kStackBytes = 256;

/// A conditional jump to the next instruction counts as no branch.
bool is_taken(const SourceInsn& insn, TraceeAddr next) {
  switch (insn.kind) {
    case InsnClass::kConditionalJump:
    case InsnClass::kJumpIfRcxZero:
    case InsnClass::kLoop:
      return next != insn.next();
    case InsnClass::kJump:
    case InsnClass::kCall:
    case InsnClass::kIndirectJump:
    case InsnClass::kIndirectCall:
    case InsnClass::kReturn:
      return true;
    default:
      return false;
  }
}

/// Returns true for an instruction that leaves no translated code.
bool vanishes_in_translation(const SourceInsn& insn) {
  const bool conditional =
      insn.kind == InsnClass::kConditionalJump || insn.kind == InsnClass::kJumpIfRcxZero;
  return insn.kind == InsnClass::kJump || (conditional && insn.target == insn.next());
}

SourceInsn decode_at(const CodeSource& source, TraceeAddr pc) {
  std::array<std::uint8_t, kMaxInsnBytes> bytes{};
  const std::size_t length = source.read(pc, bytes);
  return decode_source(pc, std::span{bytes}.first(length));
}

}  // namespace

ComparedStops::ComparedStops(SteppedProgram program) : program_{std::move(program)} {
  // Includes stops before the final jump.
  const Stepped stepped{
      {{program_.begin, program_.end + 1}},
      [this](TraceeAddr pc, const MachineState& state) { add_native(pc, state); }};
  static_cast<void>(TranslatedRun::run_natively(program_.begin, program_.before));
}

/// Hashes memory without the word below the stack, which the translation of a call writes early.
std::uint64_t ComparedStops::hash_memory(std::uint64_t sp) const {
  constexpr std::uint64_t kPrime = 0x100'0000'01b3;
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  const auto add = [&](std::span<const std::uint8_t> bytes) {
    for (; bytes.size() >= sizeof(std::uint64_t); bytes = bytes.subspan(sizeof(std::uint64_t))) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof word);
      hash = (hash ^ word) * kPrime;
    }
  };
  add(program_.data);
  const std::uint64_t at = sp - std::bit_cast<std::uintptr_t>(program_.stack.data());
  if (at < kRedZoneBytes || at + kStackBytes > program_.stack.size()) return hash;
  add(program_.stack.subspan(at - kRedZoneBytes, kRedZoneBytes - sizeof(std::uint64_t)));
  add(program_.stack.subspan(at, kStackBytes));
  return hash;
}

void ComparedStops::add_native(TraceeAddr pc, const MachineState& state) {
  const SourceInsn insn = pc == program_.end ? SourceInsn{} : decode_at(program_.source, pc);
  Stop stop{.pc = pc,
            .state = state,
            .memory = hash_memory(state.general[kRsp]),
            .vanishes = vanishes_in_translation(insn)};
  if (!native_.empty()) {
    const Stop& last = native_.back();
    const SourceInsn before = decode_at(program_.source, last.pc);
    stop.taken = last.taken + (is_taken(before, pc) ? 1 : 0);
  }
  native_.push_back(stop);
}

std::optional<std::size_t> ComparedStops::find(const Stop& stop) const {
  std::size_t last = at_ + (begun_ ? 1 : 0);
  for (std::size_t i = at_; i <= last && i < native_.size(); ++i) {
    const Stop& native = native_[i];
    if (native.pc == stop.pc && native.state == stop.state && native.memory == stop.memory &&
        native.taken == stop.taken) {
      return i;
    }
    if (i == last && native.vanishes) ++last;
  }
  return std::nullopt;
}

/// Returns the true value, before the instruction at the program's pc.
std::uint64_t ComparedStops::true_value(const ValuePoint& point,
                                        const ProgramState& program) const {
  const auto old = old_bytes_of(point.kind);
  if (!old) return program.regs[kGeneralRegisters.at(point.kind)];
  const SourceInsn insn = decode_at(program_.source, program.pc);
  const bool calls = insn.kind == InsnClass::kCall || insn.kind == InsnClass::kIndirectCall;
  const StoredPlace place = calls ? kPushedPlace : value_registers(insn).stored;
  std::uint64_t address = insn.target.value();
  if (!place.is_relative) {
    const auto reg = [&](Gpr which) {
      return program.regs[kGeneralRegisters.at(static_cast<std::size_t>(which))];
    };
    address = static_cast<std::uint64_t>(std::int64_t{place.at.displacement});
    if (place.at.base) address += reg(*place.at.base);
    if (place.at.index) address += reg(*place.at.index) << place.at.scale_bits;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, std::bit_cast<const void*>(address + 8UL * old->part), old->size);
  return value;
}

bool ComparedStops::has_recorded(const TranslatedRun& run, std::uint32_t offset,
                                 const ProgramState& program) {
  const Superblock& block = run.current();
  const auto values = run.values();
  if ((program.flags & kCommitted) != 0) return values.size() == run.exit_logged().values;
  const std::size_t count =
      values_recorded(block.values, block.side_exits_at, offset, block.entry_at(offset));
  if (values.size() + block.entry_at(offset).values != count) return false;
  // A repeated instruction changes its registers as it goes on.
  for (; values_seen_ < count; ++values_seen_) {
    const ValuePoint& point = block.values[values_seen_];
    const bool is_here = point.pc == program.pc && point.passed == block.entry_at(offset).passed;
    // Values that do not count yet follow the others.
    if (!is_here || true_value(point, program) != values.data()[values_seen_]) return false;
  }
  return true;
}

void ComparedStops::compare(const TranslatedRun& run, TraceeAddr pc, const MachineState& state) {
  if (!difference_.empty()) return;
  const Superblock& block = run.current();
  if (run.superblocks() != superblock_) {
    superblock_ = run.superblocks();
    taken_before_ = native_[at_].taken;
    values_seen_ = 0;
  }
  const std::uint64_t offset = pc - block.address;
  if (offset >= block.code.size()) return;  // Execution is leaving the superblock.
  ++stops_;
  const PcMapEntry& map_entry = block.entry_at(static_cast<std::uint32_t>(offset));
  const ProgramState program = state_in_superblock(
      map_entry, user_regs(state), [](Slot slot) { return TranslatedRun::slot(slot); });
  Stop stop{.pc = program.pc, .state = state};
  for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
    stop.state.general.at(i) = program.regs[kGeneralRegisters.at(i)];
  }
  stop.memory = hash_memory(stop.state.general[kRsp]);
  const bool committed = (program.flags & kCommitted) != 0;
  // Until the end of an indirect-branch entry, the log is still that of the previous superblock.
  const bool ib_entry = committed && offset < block.after_entry;
  const bool logged = committed && !ib_entry;
  stop.taken = taken_before_ + map_entry.passed;
  if (logged) {
    const Exit& exit = run.exit_logged();
    const bool branched = exit.kind == ExitKind::kDirect || exit.kind == ExitKind::kIndirect;
    stop.taken = taken_before_ + exit.passed + (branched ? 1 : 0);
  }
  if (!ib_entry && !has_recorded(run, static_cast<std::uint32_t>(offset), program)) {
    difference_ = "the recorded values, " + describe(run, pc, stop);
    return;
  }
  if (program.log != run.log_begin() + (logged ? kLogEntryBytes : 0)) {
    difference_ = "the log, " + describe(run, pc, stop);
    return;
  }
  if (const auto wrong = run.wrong_target()) {
    if (stop.pc != *wrong) {
      difference_ = "the target, " + describe(run, pc, stop);
      return;
    }
    stop.pc = native_[at_].pc;
  }
  const auto found = find(stop);
  if (!found) {
    difference_ = describe(run, pc, stop);
    return;
  }
  at_ = *found;
  begun_ = true;
}

std::string ComparedStops::describe(const TranslatedRun& run, TraceeAddr pc,
                                    const Stop& stop) const {
  const Stop& near = native_[std::min(at_ + (begun_ ? 1 : 0), native_.size() - 1)];
  const Superblock& block = run.current();
  const std::uint64_t offset = pc - block.address;
  std::string out = fmt::format(
      "{} bytes into the superblock of {:#x}: pc {:#x}, natively {:#x} or {:#x}", offset,
      block.start.value(), stop.pc.value(), native_[at_].pc.value(), near.pc.value());
  const Stop& same = stop.pc == near.pc ? near : native_[at_];
  for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
    const auto is = stop.state.general.at(i);
    const auto should = same.state.general.at(i);
    if (is != should) out += fmt::format(", r{} {:#x} for {:#x}", i, is, should);
    if (stop.state.vectors.at(i) != same.state.vectors.at(i)) out += fmt::format(", xmm{}", i);
  }
  if (stop.state.flags != same.state.flags) out += ", flags";
  if (stop.memory != same.memory) out += ", memory";
  if (stop.taken != same.taken) out += fmt::format(", {} branches for {}", stop.taken, same.taken);
  out += "\n";
  for (const std::uint8_t byte : block.code) out += fmt::format(" {:02x}", byte);
  return out;
}

std::string ComparedStops::differences(TranslatedRun& run, const CodeSource& source,
                                       const TranslatedRun::Shape& shape) {
  at_ = 0;
  begun_ = false;
  difference_.clear();
  superblock_ = run.superblocks();
  taken_before_ = 0;
  values_seen_ = 0;
  const Stepped stepped{{run.code_range()},
                        [&](TraceeAddr pc, const MachineState& state) { compare(run, pc, state); }};
  const auto after = run.run(source, program_.begin, program_.end, program_.before, shape);
  ended_ = after.has_value();
  if (difference_.empty() && ended_ && native_[at_].pc != program_.end) {
    difference_ = fmt::format("ended after {} of {} instructions", at_, native_.size());
  }
  return difference_;
}

}  // namespace backtrail::arch::x86::translate
