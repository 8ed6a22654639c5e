#pragma once
/// @file
/// From translated code back to the program's own state, at any instruction.

#include <cstdint>
#include <functional>

#include "arch/base/address.hpp"
#include "arch/x86/raw_registers.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/superblock.hpp"

namespace backtrail::arch::x86::translate {

/// What a thread that was stopped is like, as far as the program knows.
struct ProgramState {
  UserRegs regs;  ///< rip is still where it was stopped.
  TraceeAddr pc;  ///< 0 where only the log can tell.
  TraceeAddr log;
  std::uint8_t flags = 0;  ///< StateFlags: kCommitted is what counts from here on.
};

/// Of the thread's page.
using ReadSlot = std::function<std::uint64_t(Slot)>;

/// `row` is the superblock's for the place where the thread has stopped.
[[nodiscard]] ProgramState state_in_superblock(const PcRow& row, const UserRegs& stopped,
                                               const ReadSlot& read);

/// The same in the miss routine; `saved`: from MissRoutine::saved_at on. The program goes to pc,
/// or to where the exit leads that was logged last.
[[nodiscard]] ProgramState state_in_miss(const PcRow& row, bool saved, const UserRegs& stopped,
                                         const ReadSlot& read);

/// State from MissRoutine::returned_at on: the program goes to pc.
[[nodiscard]] ProgramState state_behind_handler(const UserRegs& stopped, const ReadSlot& read);

}  // namespace backtrail::arch::x86::translate
