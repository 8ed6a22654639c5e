// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A superblock: translated code, and the program's state at every byte of it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/value_kind.hpp"
#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

/// Where the program's state is while a thread is at a place in translated code.
enum StateFlag : std::uint8_t {
  kR10Live = 1,       ///< The program's r10 is in r10; else in its slot.
  kR11Live = 2,       ///< The program's r11 is in r11; else in its slot.
  kLogInSlot = 4,     ///< The log pointer is in its slot; else in r11.
  kRcxInSlot = 8,     ///< The program's rcx is in its slot.
  kRcxPlusOne = 16,   ///< The program's rcx is one more than rcx.
  kCommitted = 32,    ///< The log says that this superblock was left.
  kTargetInR10 = 64,  ///< r10 holds the program's pc (with kCommitted), or its rsp (without).
  kRcxIsPc = 128,     ///< The program's rcx equals its pc, as after SYSCALL.
};

/// A pc map entry: the program's state from one offset up to the next entry's.
struct PcMapEntry {
  std::uint32_t offset = 0;
  TraceeAddr pc{};             ///< The instruction that the program executes next.
  std::int32_t stack_add = 0;  ///< To be added to rsp for the program's value.
  std::uint16_t passed = 0;    ///< Branches taken since the start of the superblock.
  std::uint8_t flags = 0;      ///< StateFlag bits.
  /// Values that the superblock has stored since Slot::kValues was advanced.
  std::uint8_t values = 0;
  bool is_recording = false;  ///< Values are being recorded; the instruction at `pc` comes after.
};

enum class ExitKind : std::uint8_t {
  kDirect,    ///< A taken branch from `from` to `to`.
  kIndirect,  ///< A taken branch from `from`; the target is in r10, and the program's rcx in its
              ///< slot.
  kContinue,  ///< Falls through to `to`.
  kUntranslatable,  ///< The instruction at `to` is left to the CPU.
  kStale,           ///< The program's code has changed; nothing of the superblock was executed.
};

/// A way out of a superblock; `id` is its exit id.
struct Exit {
  std::uint32_t id = 0;
  ExitKind kind = ExitKind::kDirect;
  UntranslatableReason reason = UntranslatableReason::kNone;
  std::uint16_t passed = 0;    ///< Branches taken before it.
  std::uint16_t executed = 0;  ///< Instructions from the start up to and including the one that
                               ///< leaves.
  std::uint16_t values = 0;    ///< Values recorded before it.
  TraceeAddr from{};
  TraceeAddr to{};
  /// Offset of the rel32 that can be linked to the target's translation; 0 = none.
  std::uint32_t link_offset = 0;
};

using Branch = std::pair<TraceeAddr, TraceeAddr>;

/// A value that a superblock records: of a register or of the bytes that a store overwrites, before
/// an instruction.
struct ValuePoint {
  TraceeAddr pc;
  std::uint32_t offset = 0;  ///< Offset of the code from which on the value counts as recorded.
  std::uint16_t passed = 0;  ///< Branches taken since the start of the superblock.
  ValueKind kind = 0;
};

struct Superblock {
  TraceeAddr start;               ///< Start pc; a native address.
  TraceeAddr address;             ///< Address of the code.
  std::uint32_t after_entry = 0;  ///< Offset of the code after the indirect-branch entry.
  std::vector<std::uint8_t> code;
  std::vector<PcMapEntry> pc_map;  ///< Ascending.
  std::vector<Exit> exits;
  std::vector<Branch> branches;  ///< Branches taken inside, in order; each exit has passed the
                                 ///< first few.
  std::vector<Branch> ranges;    ///< Native ranges [begin, end) that were translated.
  /// The bytes of all ranges, one after the other; empty unless TranslateOptions::keeps_code.
  std::vector<std::uint8_t> native;
  std::vector<TraceeAddr> returns;   ///< Return addresses of its calls.
  std::vector<TraceeAddr> pointers;  ///< Addresses of pointers to which it jumps or which it calls.
  std::uint32_t instructions = 0;
  /// The values that it records, in order; each exit comes after the first few. Empty unless
  /// TranslateOptions::records_values.
  std::vector<ValuePoint> values;
  std::uint32_t side_exits_at = 0;  ///< Offset of the exits in its middle, which follow its path.
  bool calls = false;  ///< Makes a system call, or ends before one that is left to the CPU.

  /// Returns the pc map entry for an offset below code.size().
  [[nodiscard]] const PcMapEntry& entry_at(std::uint32_t offset) const;
};

/// Returns how many of a superblock's values are recorded when a thread is at a code offset, which
/// has that pc map entry, before the superblock is left.
[[nodiscard]] std::size_t values_recorded(std::span<const ValuePoint> values,
                                          std::uint32_t side_exits_at, std::uint32_t offset,
                                          const PcMapEntry& map_entry);

}  // namespace backtrail::arch::x86::translate
