// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The exits of superblocks, by where they lead to.

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/head_table.hpp"

namespace backtrail::tracee::cache {

/// Keeps the direct exits of superblocks pointed to the translation of their target.
///
/// Exits have ids: those loaded from the persistent cache the lowest, then those of this process in
/// the order they were added. Each native address that exits of this process lead to, or that a
/// superblock of this process begins at, has a list of the former and the index of the latter
/// (Superblocks). The exits of loaded superblocks are in no list (LoadedLinks).
class ExitLinks {
 public:
  /// `links` is borrowed.
  explicit ExitLinks(CodeLinks& links) : links_{links} {}

  /// Gives the lowest ids to loaded exits. Before the first add(); `places` is borrowed.
  void load(std::span<const ExitPlace> places) { loaded_ = places; }
  /// Adds the exit with the next id, of a superblock whose code is at `offset`.
  void add(const arch::x86::translate::Exit& exit, std::uint64_t offset);
  /// Puts an exit of this process in the list of `to`; at most once.
  void list(std::uint32_t exit_id, TraceeAddr to);
  /// Forgets which exits lead where and which superblock begins where; ids stay.
  void clear() { heads_.clear(); }

  /// An exit's link and kind. The id has been given to an exit.
  [[nodiscard]] ExitPlace place(std::uint32_t exit_id) const;
  [[nodiscard]] bool is_loaded(std::uint32_t exit_id) const { return exit_id < loaded_.size(); }

  /// The index of the superblock that direct exits to `head` lead to; nullopt if there is none of
  /// this process.
  [[nodiscard]] std::optional<std::uint32_t> superblock(TraceeAddr head) const;
  /// Makes all listed exits to `head`, now and later ones, lead to a superblock whose code is at
  /// `address`.
  void set_superblock(TraceeAddr head, std::uint32_t index, TraceeAddr address);
  /// No superblock begins at `head` any more: all listed exits to it lead to `miss`.
  void remove_superblock(TraceeAddr head, TraceeAddr miss);

  /// The exits of this process, in order, as the persistent cache holds them.
  [[nodiscard]] KeptPieceList<ExitPlace> places() const { return places_.pieces(); }

 private:
  void point_all(const HeadTable::Entry& head, TraceeAddr target);

  CodeLinks& links_;
  std::span<const ExitPlace> loaded_;
  ChunkedArray<ExitPlace> places_;    ///< Exits of this process.
  ChunkedArray<std::uint32_t> next_;  ///< For each of them, the next one in the same list.
  HeadTable heads_;
};

}  // namespace backtrail::tracee::cache
