// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checked superblocks: made of code that may change at any time.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/followed_path.hpp"

namespace backtrail::arch::x86::translate {

/// Compares the few instructions of a checked superblock with what they were, each time that it is
/// entered.
class CodeCheck {
 public:
  /// Borrows the writer.
  explicit CodeCheck(BlockWriter& writer) : writer_{writer} {}

  /// Reads the instructions from the path's pc on. Returns the reason if the first one is
  /// untranslatable, otherwise kNone.
  [[nodiscard]] UntranslatableReason scan(const FollowedPath& path);
  /// Returns the instructions that were read, in order.
  [[nodiscard]] const std::vector<SourceInsn>& insns() const { return insns_; }
  /// Emits the comparison.
  void emit();
  /// Emits the exit for when the code is another. Call after all other code.
  void emit_stale_exit();

 private:
  void load(std::size_t bytes);

  BlockWriter& writer_;
  std::vector<SourceInsn> insns_;
  std::vector<std::uint32_t> stale_jumps_;
};

}  // namespace backtrail::arch::x86::translate
