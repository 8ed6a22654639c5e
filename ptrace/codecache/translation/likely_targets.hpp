// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which way branches mostly go, as samples of the logs tell.

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"

namespace backtrail::tracee::cache {

/// An exit of a superblock, with how often it was seen.
struct SeenExit {
  std::uint32_t number = 0;  ///< Its id in the ExitTable.
  decoder::LoggedExit what;
  ExitProfile::Count count;
};

/// Remembers for each branch the target that a superblock should follow it to.
class LikelyTargets {
 public:
  /// Whether the instruction at an address is a conditional jump.
  using IsConditional = std::function<bool(TraceeAddr)>;

  /// Where the branch at this address mostly goes; nullopt if it mostly falls through, goes
  /// anywhere, or is not known.
  [[nodiscard]] std::optional<TraceeAddr> find(TraceeAddr branch) const;
  /// Takes in the samples of one superblock's exits, which are in `table`. Returns true if one of
  /// its branches goes another way than known before, so that retranslating it pays.
  bool learn(std::vector<SeenExit> exits, const decoder::ExitTable& table,
             const IsConditional& is_conditional);

 private:
  struct Target {
    std::optional<TraceeAddr> target;
    std::uint32_t changes = 0;
  };
  /// Takes in the exit that a superblock is mostly left by.
  bool learn_from(const SeenExit& exit, const decoder::ExitTable& table,
                  const IsConditional& is_conditional);
  /// Returns true if that is new, and the branch has not changed too often.
  bool set(TraceeAddr branch, std::optional<TraceeAddr> target);

  std::unordered_map<TraceeAddr, Target> targets_;  ///< By the branch's address.
};

}  // namespace backtrail::tracee::cache
