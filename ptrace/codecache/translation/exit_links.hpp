// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The direct exits of superblocks, by their targets.

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/start_table.hpp"

namespace backtrail::tracee::cache {

/// Links the direct exits of superblocks to the translations of their targets.
///
/// Exits loaded from the persistent cache have the lowest ids; those of this process follow in the
/// order in which they were added. For each native address there is a list of the exits of this
/// process that lead to it, and the index (Superblocks) of the superblock of this process that
/// begins there. The exits of loaded superblocks are in no list: LoadedLinks has them.
class ExitLinks {
 public:
  /// `links` is borrowed.
  explicit ExitLinks(CodeLinks& links) : links_{links} {}

  /// Gives the lowest ids to loaded exits; call before the first add(). `places` is borrowed.
  void load(std::span<const ExitPlace> places) { loaded_ = places; }
  /// Adds an exit of a superblock whose code begins at `offset`. It gets the next id.
  void add(const arch::cpu::translate::Exit& exit, std::uint64_t offset);
  /// Puts an exit of this process in the list of its target; call at most once for each.
  void list(std::uint32_t exit_id, TraceeAddr to);
  /// Empties all lists and forgets which superblocks begin where. Exits keep their ids.
  void clear() { starts_.clear(); }

  /// Returns an exit's link and kind. `exit_id` must be in use.
  [[nodiscard]] ExitPlace place(std::uint32_t exit_id) const;
  [[nodiscard]] bool is_loaded(std::uint32_t exit_id) const { return exit_id < loaded_.size(); }

  /// Returns the index of the superblock that listed exits to `start` lead to; nullopt if no
  /// superblock of this process does.
  [[nodiscard]] std::optional<std::uint32_t> superblock(TraceeAddr start) const {
    const StartTable::Entry* known = starts_.find(start);
    if (known == nullptr || known->block == StartTable::kNone) return std::nullopt;
    return known->block;
  }
  /// Makes all listed exits to `start` lead to a superblock whose code is at `address`.
  void set_superblock(TraceeAddr start, std::uint32_t index, TraceeAddr address);
  /// Makes all listed exits to `start` lead to `miss`: no superblock begins there any more.
  void remove_superblock(TraceeAddr start, TraceeAddr miss);

  /// The exits of this process, in order, as the persistent cache holds them.
  [[nodiscard]] PersistentPieceList<ExitPlace> places() const { return places_.pieces(); }

 private:
  void point_all(const StartTable::Entry& start, TraceeAddr target);

  CodeLinks& links_;
  std::span<const ExitPlace> loaded_;
  ChunkedArray<ExitPlace> places_;    ///< Exits of this process.
  ChunkedArray<std::uint32_t> next_;  ///< The next exit in the list of each of them.
  StartTable starts_;
};

}  // namespace backtrail::tracee::cache
