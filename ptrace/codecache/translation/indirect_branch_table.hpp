// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The entries by which indirect branches in translated code find the translation of their target.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/memory/entry_table.hpp"
#include "ptrace/codecache/persist/persistent_code.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

/// Keeps the look-up table and the indirect-branch entries in the code consistent while the program
/// runs.
///
/// A superblock for indirect branches begins with an entry, which compares the branch's target with
/// its own native address. Entries whose addresses share a place in the table form a chain: the
/// place leads to the newest one, and each jumps on to the one before it if the target is another.
/// The last one jumps to the dispatch stub, as empty places do. An entry is named by its code
/// offset.
///
///     table[bits of the target] -> entry of B -> entry of A -> dispatch stub
///
/// A thread that goes along a chain while it changes may end at the dispatch stub although there is
/// an entry for its target. That is a miss like any other: find() tells the tracer where to send
/// it.
///
/// Table and links lie in memory that a hostile program can write. A place or a link that leads to
/// no entry ends its chain, and is_damaged() tells.
class IndirectBranchTable {
 public:
  /// `dispatch` is the dispatch stub for indirect branches; every place of `table` must lead to it
  /// already. All references are borrowed. `superblocks` must know the superblock of each entry in
  /// a chain.
  IndirectBranchTable(EntryTable& table, CodeLinks& links, const Superblocks& superblocks,
                      TraceeAddr dispatch);

  /// Returns the superblock whose entry takes indirect branches to `start`; nullptr if there is
  /// none.
  [[nodiscard]] const CodeBlock* find(TraceeAddr start) const;
  /// Returns the address to which the table sends an indirect branch to `start`: an entry or the
  /// dispatch stub. A new entry must lead there if the target is another.
  [[nodiscard]] TraceeAddr first(TraceeAddr start) const;
  /// Puts a new entry, which leads on to first(start) already, at the beginning of its chain.
  void open(TraceeAddr start, std::uint64_t entry);
  /// Puts an entry that has been closed, or never opened, at the beginning of its chain.
  void reopen(TraceeAddr start, std::uint64_t entry);
  /// Opens the saved entries of a module, none of which has been in a chain yet. The code must be
  /// as it was saved: each of them leads on to the one before it that shares its place in a table
  /// of EntryTable::size_for(entries.size()) places, which is the table's size now.
  void open_saved(std::span<const PersistentIbEntry> entries,
                  const arch::cpu::translate::Branch& module);
  /// Takes an entry out of its chain. A thread heading for it goes on to the next one.
  void close(TraceeAddr start, std::uint64_t entry);
  [[nodiscard]] std::size_t size() const { return table_.size(); }
  /// Enlarges the table if it is too small for this number of entries.
  void make_fit(std::size_t entries);
  /// Enlarges the table to kTableEntries places or more: chains are then short whatever the
  /// entries' addresses are.
  void widen();
  /// Returns true if a chain did not lead to an entry or to the dispatch stub.
  [[nodiscard]] bool is_damaged() const { return damaged_; }
  /// Empties the table. No thread may be in an entry or get into one.
  void clear();

 private:
  void grow_to(std::size_t size);
  [[nodiscard]] TraceeAddr next(std::uint64_t entry) const;
  /// Makes an entry lead to `target` for branches that do not match.
  void set_next(std::uint64_t entry, TraceeAddr target);
  /// Returns the superblock of the entry at this address; null for the dispatch stub and where no
  /// entry is.
  [[nodiscard]] const CodeBlock* superblock_at(TraceeAddr address) const;
  /// Calls `look` with each entry of the chain that begins at `first`, and its superblock, until it
  /// returns false. It may change the link of the entry.
  template <typename Look>
  void walk(TraceeAddr first, Look look) const;
  /// Replaces the first two bytes of an entry.
  void begin_with(std::uint64_t entry, const std::array<std::uint8_t, 2>& bytes);

  EntryTable& table_;
  CodeLinks& links_;
  const Superblocks& superblocks_;
  TraceeAddr dispatch_;
  std::size_t open_ = 0;  ///< Number of entries in chains.
  mutable bool damaged_ = false;
};

}  // namespace backtrail::tracee::cache
