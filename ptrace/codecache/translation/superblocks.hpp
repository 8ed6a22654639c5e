// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The superblocks of one address space, with the facts known of each.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/chunked_array.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"

namespace backtrail::tracee::cache {

/// Finds superblocks by the place of their translation, by their id in the ExitTable, and by the
/// native code that they were made of.
///
/// Superblocks loaded from the persistent cache, if there are any, come first: their code lies at
/// the beginning, and their ids are the lowest. They never change. Superblocks of this process have
/// an index, counted from 0 in the order they were added, and can be marked as dropped; none is
/// removed until clear().
class Superblocks {
 public:
  /// Puts the superblocks of the persistent cache before all others; call before the first add().
  void load(std::shared_ptr<const PersistentCode> loaded);
  /// Adds a superblock of this process and returns its index. Its code must lie after all others,
  /// and its id must be the highest. `pc_map` is its pc map; `ranges` are the native [begin, end)
  /// that it was made of. The fields of `block` that tell where both are stored are set here.
  std::uint32_t add(CodeBlock block, std::span<const arch::cpu::translate::PcMapEntry> pc_map,
                    std::span<const arch::cpu::translate::Branch> ranges);
  /// Forgets all superblocks, loaded ones too.
  void clear();

  /// Returns the number of superblocks of this process, dropped ones included.
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  /// Returns the number of superblocks, dropped and loaded ones included.
  [[nodiscard]] std::size_t total() const {
    return size() + (loaded_ ? loaded_->parts().blocks.size() : 0);
  }
  /// Returns the number of superblocks of this process made of code that is in no file.
  [[nodiscard]] std::size_t made_here() const { return made_here_; }
  [[nodiscard]] const CodeBlock& operator[](std::uint32_t index) const { return blocks_[index]; }
  void set(std::uint32_t index, CodeBlock::Flag flag) { blocks_[index].set(flag); }
  void reset(std::uint32_t index, CodeBlock::Flag flag) { blocks_[index].reset(flag); }

  /// Returns true if the code at this offset was loaded.
  [[nodiscard]] bool is_loaded(std::uint64_t offset) const { return offset < loaded_bytes_; }
  /// Returns the superblock, loaded or not, whose code contains a code offset; nullptr if none
  /// does.
  [[nodiscard]] const CodeBlock* at(std::uint64_t offset) const;
  /// Returns the index of the superblock whose code contains a code offset; nullopt if there is
  /// none or it was loaded.
  [[nodiscard]] std::optional<std::uint32_t> index_at(std::uint64_t offset) const;
  /// Returns the superblock, loaded or not, with this id in the ExitTable; nullptr if there is
  /// none.
  [[nodiscard]] const CodeBlock* with_id(std::uint32_t id) const;
  /// Returns the index of the superblock with this id; nullopt if there is none or it was loaded.
  [[nodiscard]] std::optional<std::uint32_t> index_of(std::uint32_t id) const;

  /// Returns the indexes of superblocks made of code in [begin, end), some of them twice. Dropped
  /// ones are included only while they are marked kUnloaded. `begin` must be less than `end`.
  [[nodiscard]] std::vector<std::uint32_t> made_of(TraceeAddr begin, TraceeAddr end);
  /// Makes made_of() skip a dropped superblock from now on, which saves it work where the same code
  /// is translated over and over.
  void forget_ranges(std::uint32_t index);

  /// Returns the native code that a superblock of this process was made of.
  [[nodiscard]] CodeRanges ranges_of(const CodeBlock& block) const;
  /// Returns the pc map entry for an offset within a superblock's code, loaded or not; nullopt
  /// before the first entry.
  [[nodiscard]] std::optional<arch::cpu::translate::PcMapEntry> map_entry(
      const CodeBlock& block, std::uint64_t within) const;
  /// Returns the number of native bytes that superblocks of this process were made of, each counted
  /// once.
  [[nodiscard]] std::uint64_t source_bytes() const;

  /// Returns the superblocks of this process, in order, as the persistent cache stores them.
  [[nodiscard]] PersistentPieceList<CodeBlock> blocks() const { return blocks_.pieces(); }
  /// Returns the pc maps and ranges of the superblocks of this process, packed.
  [[nodiscard]] PersistentPieceList<std::uint8_t> packed() const { return packed_.pieces(); }

 private:
  ChunkedArray<CodeBlock> blocks_;     ///< Ascending by offset, and by id.
  ChunkedArray<std::uint8_t> packed_;  ///< Pc maps and ranges of all blocks_.
  std::vector<std::uint8_t> packing_;  ///< Scratch of add().
  /// Indexes of the superblocks made of code in a page, by page number.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_page_;
  std::size_t made_here_ = 0;
  std::shared_ptr<const PersistentCode> loaded_;
  std::uint64_t loaded_bytes_ = 0;  ///< Bytes of loaded code.
  std::uint32_t loaded_rows_ = 0;   ///< Bytes of loaded pc maps, packed.
};

}  // namespace backtrail::tracee::cache
