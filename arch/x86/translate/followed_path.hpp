// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The way of one superblock through the program's code: what comes next, and where it ends.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/x86/translate/block_writer.hpp"
#include "arch/x86/translate/side_exits.hpp"

namespace backtrail::arch::x86::translate {

class FollowedPath {
 public:
  /// Borrows all of them: how much was written tells when the limits are reached.
  FollowedPath(const CodeSource& source, const TranslateOptions& options, const BlockWriter& writer,
               const SideExits& side_exits);

  /// Returns the address of the next instruction.
  [[nodiscard]] TraceeAddr pc() const { return pc_; }
  void go_to(TraceeAddr pc) { pc_ = pc; }
  /// Notes that the instruction at pc() is translated.
  void enter() { seen_.push_back(pc_); }
  /// Fetches an instruction, and marks it as untranslatable if it belongs to an rseq critical
  /// section.
  [[nodiscard]] SourceInsn examine(TraceeAddr pc) const;
  [[nodiscard]] bool must_stop_before(TraceeAddr pc) const {
    return !is_undisturbed(pc) && source_.stop_before(pc);
  }

  [[nodiscard]] bool limits_reached() const {
    return writer_.block().instructions >= options_.max_instructions ||
           side_exits_.size() + 1 >= options_.max_exits || writer_.offset() >= options_.max_bytes;
  }
  /// Returns true if another superblock begins at pc().
  [[nodiscard]] bool joins() const;
  /// Returns true if the target of this jump or call gets a superblock of its own.
  [[nodiscard]] bool is_left_to_another(const SourceInsn& insn) const;
  [[nodiscard]] bool may_follow(TraceeAddr target) const;
  /// Returns where the branch at `pc` mostly goes, if that is known.
  [[nodiscard]] std::optional<TraceeAddr> likely_target(TraceeAddr pc) const;
  /// Returns true if the branch mostly goes to `to` and the superblock may follow it.
  [[nodiscard]] bool goes_likely(const SourceInsn& insn, TraceeAddr to) const;
  /// Returns true if the jump closes a loop of which another iteration should be unrolled.
  [[nodiscard]] bool may_unroll(const SourceInsn& insn) const;
  /// Call when it is: the superblock may then contain each instruction once more.
  void unroll() { ++copies_; }

  /// Notes the return address of a call that is followed.
  void enter_call(TraceeAddr behind) { calls_.push_back(behind); }
  /// Takes the return address of the innermost followed call; nullopt if there is none.
  [[nodiscard]] std::optional<TraceeAddr> leave_call();

 private:
  [[nodiscard]] SourceInsn fetch(TraceeAddr pc) const;
  /// Returns true if the source has nothing to say about an address (CodeSource::undisturbed).
  [[nodiscard]] bool is_undisturbed(TraceeAddr at) const {
    return (undisturbed_.first <= at && at < undisturbed_.second) || finds_undisturbed(at);
  }
  bool finds_undisturbed(TraceeAddr at) const;

  const CodeSource& source_;
  const TranslateOptions& options_;
  const BlockWriter& writer_;
  const SideExits& side_exits_;
  TraceeAddr pc_;
  std::vector<TraceeAddr> seen_;
  std::ptrdiff_t copies_ = 1;  ///< Number of times that the superblock may contain an
                               ///< instruction: the iterations of an unrolled loop.
  mutable std::span<const std::uint8_t> view_;  ///< Result of CodeSource::view for view_at_.
  mutable TraceeAddr view_at_;
  mutable std::pair<TraceeAddr, TraceeAddr> undisturbed_;  ///< As CodeSource::undisturbed.
  mutable bool asks_undisturbed_;  ///< CodeSource::undisturbed has not returned an empty range.
  std::vector<TraceeAddr> calls_;  ///< Return addresses of the calls that were followed.
};

}  // namespace backtrail::arch::x86::translate
