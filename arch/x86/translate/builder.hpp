// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Builds one superblock; see translator.hpp.

#include <optional>
#include <variant>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/call_builder.hpp"
#include "arch/x86/translate/code_check.hpp"
#include "arch/x86/translate/followed_path.hpp"
#include "arch/x86/translate/indirect_builder.hpp"
#include "arch/x86/translate/side_exits.hpp"
#include "arch/x86/translate/value_recorder.hpp"

namespace backtrail::arch::x86::translate {

/// Builds one superblock, once: it borrows `source` and `options`.
class Builder {
 public:
  Builder(const CodeSource& source, TraceeAddr start, const TranslateOptions& options);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  ~Builder() = default;

  [[nodiscard]] std::variant<Superblock, UntranslatableReason> build();

 private:
  [[nodiscard]] bool must_end_before(TraceeAddr pc) const;
  /// Emits one instruction; returns false if the superblock ends with it.
  bool step(const SourceInsn& insn);
  void copy(const SourceInsn& insn);
  bool copy_relative(const SourceInsn& insn);
  void load_address(const SourceInsn& insn);
  void conditional_jump(const SourceInsn& insn);
  void jump_if_rcx_zero(const SourceInsn& insn);
  void loop(const SourceInsn& insn);
  bool follow(const SourceInsn& insn);
  void take(const SourceInsn& insn);

  const TranslateOptions& options_;
  BlockWriter writer_;
  Emitter& emit_;
  SideExits side_exits_;
  FollowedPath path_;
  CodeCheck check_;
  ValueRecorder values_;
  IndirectBuilder indirect_;
  CallBuilder calls_;
  UntranslatableReason left_for_ = UntranslatableReason::kNone;
  std::optional<std::uint32_t> eax_;  ///< The program's eax, if it is known.
};

}  // namespace backtrail::arch::x86::translate
