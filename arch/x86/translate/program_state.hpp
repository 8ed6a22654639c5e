// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State translation: from translated code back to the program's state, at any instruction.

#include <cstdint>
#include <functional>

#include "arch/base/address.hpp"
#include "arch/x86/raw_registers.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/superblock.hpp"

namespace backtrail::arch::x86::translate {

/// The state of a stopped thread, as the program knows it.
struct ProgramState {
  UserRegs regs;  ///< Its rip is still the address at which the thread was stopped.
  TraceeAddr pc;  ///< 0 if only the log can tell.
  TraceeAddr log;
  std::uint8_t flags = 0;  ///< StateFlag bits; only kCommitted still matters.
};

/// Reads a slot of the thread page.
using ReadSlot = std::function<std::uint64_t(Slot)>;

/// `map_entry` is the superblock's pc map entry for the address of the stop.
[[nodiscard]] ProgramState state_in_superblock(const PcMapEntry& map_entry, const UserRegs& stopped,
                                               const ReadSlot& read);

/// Does this for the dispatch stub; `saved`: the stop is at or after DispatchStub::saved_at. The
/// program goes to `pc` or, if that is 0, to the target of the exit that was logged last.
[[nodiscard]] ProgramState state_in_dispatch_stub(const PcMapEntry& map_entry, bool saved,
                                                  const UserRegs& stopped, const ReadSlot& read);

/// State from DispatchStub::returned_at on: the program goes to pc.
[[nodiscard]] ProgramState state_behind_handler(const UserRegs& stopped, const ReadSlot& read);

}  // namespace backtrail::arch::x86::translate
