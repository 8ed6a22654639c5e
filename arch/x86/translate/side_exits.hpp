// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The exits in the middle of a superblock. Their code follows the other code of the superblock.

#include <cstdint>
#include <optional>
#include <vector>

#include "arch/x86/translate/block_writer.hpp"

namespace backtrail::arch::x86::translate {

/// A branch out of the superblock, whose exit is still to be emitted.
struct SideExit {
  std::uint32_t rel32 = 0;
  SourceInsn insn;
  std::uint16_t passed = 0;
  std::uint16_t executed = 0;
  std::uint16_t values = 0;
  RegisterPlaces places;
  std::uint8_t more_flags = 0;  ///< Further StateFlag bits.
  bool is_indirect = false;     ///< An indirect branch whose target, in r10, is not the
                                ///< expected one.
  std::int32_t stack_add = 0;   ///< Stack adjustment of an indirect branch, in bytes.
  bool falls_through = false;   ///< The superblock follows the branch; this exit is the
                                ///< fall-through.
  std::optional<std::uint32_t> failed_call = {};  ///< Number of a failed system call, or
                                                  ///< kNumberInSlot; nullopt for other exits.
};

/// Stands for a system call's number that is known only when the call is made.
inline constexpr std::uint32_t kNumberInSlot = ~0U;

class SideExits {
 public:
  /// Borrows both.
  SideExits(BlockWriter& writer, const TranslateOptions& options) : writer_{writer} {
    exits_.reserve(options.max_exits);
  }

  /// Emits the rel32 of a jump that was begun, to an exit in the current state. Returns the exit
  /// for the caller to complete; valid until the next call.
  SideExit& add(const SourceInsn& insn, std::uint8_t more_flags = 0);
  [[nodiscard]] std::size_t size() const { return exits_.size(); }
  /// Emits the exits. Call after all other code.
  void emit();

 private:
  void emit_one(const SideExit& side);
  void emit_failed_call(const SideExit& side);

  BlockWriter& writer_;
  std::vector<SideExit> exits_;
};

}  // namespace backtrail::arch::x86::translate
