// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translates indirect branches, and emits indirect-branch entries.

#include <cstdint>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/followed_path.hpp"
#include "arch/x86/translate/side_exits.hpp"

namespace backtrail::arch::x86::translate {

class IndirectBuilder {
 public:
  /// Borrows all three.
  IndirectBuilder(BlockWriter& writer, SideExits& side_exits, FollowedPath& path)
      : writer_{writer}, emit_{writer.emit()}, side_exits_{side_exits}, path_{path} {}

  /// Emits the entry that other superblocks reach through the look-up table.
  /// @param conflict  Where it leads if the target is another one.
  void entry(TraceeAddr conflict, IbEntryTest test);
  /// Emits an indirect jump or call; returns false if the superblock ends with it.
  bool branch(const SourceInsn& insn);
  /// Emits a return; returns false if the superblock ends with it.
  bool return_from(const SourceInsn& insn);

 private:
  void load_target(const SourceInsn& insn);
  /// Continues the superblock at `to`, and adds a side exit for when the target in r10 is not `to`.
  void follow_if(const SourceInsn& insn, TraceeAddr to, std::int32_t stack_add);

  BlockWriter& writer_;
  Emitter& emit_;
  SideExits& side_exits_;
  FollowedPath& path_;
};

}  // namespace backtrail::arch::x86::translate
