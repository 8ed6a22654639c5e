// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where branches mostly go, by samples of the logs.

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arch/base/address.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"

namespace backtrail::tracee::cache {

/// An exit of a superblock with its samples.
struct SeenExit {
  std::uint32_t number = 0;  ///< Id of the exit in the ExitTable.
  decoder::LoggedExit what;
  ExitProfile::Count count;
};

/// Remembers the target to which superblocks should follow each branch.
class LikelyTargets {
 public:
  /// Returns true if the instruction at an address is a conditional jump.
  using IsConditional = std::function<bool(TraceeAddr)>;

  /// Returns the address that the branch mostly goes to; nullopt if it mostly falls through, has no
  /// usual target, or is not known.
  [[nodiscard]] std::optional<TraceeAddr> find(TraceeAddr branch) const;
  /// Takes in the samples of one superblock's exits, which are in `table`. Returns true if one of
  /// the superblock's branches mostly goes another way than known before: retranslating it pays.
  bool learn(std::vector<SeenExit> exits, const decoder::ExitTable& table,
             const IsConditional& is_conditional);

 private:
  struct Target {
    std::optional<TraceeAddr> target;
    std::uint32_t changes = 0;
  };
  /// Takes in the exit by which most executions leave a superblock. Returns as set().
  bool learn_from(const SeenExit& exit, const decoder::ExitTable& table,
                  const IsConditional& is_conditional);
  /// Sets a branch's target. Returns true if it is new and the branch has not changed too often.
  bool set(TraceeAddr branch, std::optional<TraceeAddr> target);

  std::unordered_map<TraceeAddr, Target> targets_;  ///< By the branch's address.
};

}  // namespace backtrail::tracee::cache
