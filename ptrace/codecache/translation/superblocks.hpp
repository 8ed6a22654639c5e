// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The superblocks of one address space, and what is known about each of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"
#include "arch/x86/translate/superblock.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"

namespace backtrail::tracee::cache {

/// Finds superblocks by where their translation lies, by their id in the log, and by the native
/// code they were made of.
///
/// Superblocks loaded from the persistent cache, if there are any, come first: their code lies at
/// the beginning, and their ids are the lowest. They never change. Superblocks of this process have
/// an index, counted from 0 in the order they were added, and can be marked as dropped; none is
/// removed until clear().
class Superblocks {
 public:
  /// Puts the superblocks of the persistent cache before all others. Before the first add().
  void load(std::shared_ptr<const KeptCode> loaded);
  /// Adds a superblock of this process, whose code lies beyond all others and whose id is the
  /// highest, and returns its index. `rows` is its pc map; `ranges` are the native [begin, end) it
  /// was made of. The fields of `block` that tell where these are kept need not be set.
  std::uint32_t add(CodeBlock block, std::span<const arch::x86::translate::PcRow> rows,
                    std::span<const arch::x86::translate::Branch> ranges);
  /// Forgets all superblocks, loaded ones too.
  void clear();

  /// Superblocks of this process, dropped ones too.
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// Superblocks of this process made of code in no file.
  [[nodiscard]] std::size_t made_here() const { return made_here_; }
  [[nodiscard]] const CodeBlock& operator[](std::uint32_t index) const { return blocks_[index]; }
  void set(std::uint32_t index, CodeBlock::Flag flag) { blocks_[index].set(flag); }
  void reset(std::uint32_t index, CodeBlock::Flag flag) { blocks_[index].reset(flag); }

  /// Whether the code at this offset was loaded.
  [[nodiscard]] bool is_loaded(std::uint64_t offset) const { return offset < loaded_bytes_; }
  /// The superblock, loaded or not, whose code a code offset lies in; nullptr if none does.
  [[nodiscard]] const CodeBlock* at(std::uint64_t offset) const;
  /// The index of the superblock whose code a code offset lies in; nullopt if there is none or it
  /// was loaded.
  [[nodiscard]] std::optional<std::uint32_t> index_at(std::uint64_t offset) const;
  /// The superblock, loaded or not, that has this id in the ExitTable; nullptr if none has.
  [[nodiscard]] const CodeBlock* with_id(std::uint32_t id) const;
  /// The index of the superblock that has this id; nullopt if there is none or it was loaded.
  [[nodiscard]] std::optional<std::uint32_t> index_of(std::uint32_t id) const;

  /// The indexes of superblocks that some of [begin, end) was translated for; some may be there
  /// twice. Dropped ones are among them only while they are marked kRetired. `begin` < `end`.
  [[nodiscard]] std::vector<std::uint32_t> made_of(TraceeAddr begin, TraceeAddr end);
  /// made_of() does not find a dropped superblock any more. Saves it the work, where the same code
  /// is translated over and over.
  void forget_ranges(std::uint32_t index);

  /// The native code that a superblock of this process was made of.
  [[nodiscard]] CodeRanges ranges_of(const CodeBlock& block) const;
  /// The pc map entry that holds at an offset within a superblock's code, loaded or not; nullopt
  /// before the first one.
  [[nodiscard]] std::optional<arch::x86::translate::PcRow> row(const CodeBlock& block,
                                                               std::uint64_t within) const;
  /// Bytes of the program that superblocks of this process were made of, each counted once.
  [[nodiscard]] std::uint64_t source_bytes() const;

  /// The superblocks of this process, in order, as the persistent cache holds them.
  [[nodiscard]] KeptPieceList<CodeBlock> blocks() const { return blocks_.pieces(); }
  /// Their pc maps and ranges, packed.
  [[nodiscard]] KeptPieceList<std::uint8_t> packed() const { return packed_.pieces(); }

 private:
  ChunkedArray<CodeBlock> blocks_;     ///< Ascending by offset, and by id.
  ChunkedArray<std::uint8_t> packed_;  ///< Their pc maps and ranges.
  /// Superblocks made of code in a page, by its number.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_page_;
  std::size_t made_here_ = 0;
  std::shared_ptr<const KeptCode> loaded_;
  std::uint64_t loaded_bytes_ = 0;  ///< Bytes of loaded code.
  std::uint32_t loaded_rows_ = 0;   ///< Bytes of loaded pc maps, packed.
};

}  // namespace backtrail::tracee::cache
