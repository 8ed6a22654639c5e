// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Cached translations of one program, which another process of it can load.
///
/// Without address randomisation a program has itself, its libraries and the memory for
/// translations at the same addresses every time. Where addresses differ, nothing is loaded.
/// Translations found by address are made of one module's code and lead to translations of that
/// module only, so that each module can be used independently.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/program/code_module.hpp"

namespace backtrail::tracee::cache {

/// A start pc and the code offset of its indirect-branch entry.
using PersistentIbEntry = std::pair<TraceeAddr, std::uint32_t>;
/// A start pc and the code offset of its translation.
using PersistentTranslation = std::pair<TraceeAddr, std::uint32_t>;

/// All arrays in file form.
template <template <typename> class Array>
struct PersistentArrays {
  Array<CodeModule> modules;
  Array<std::uint8_t> code;
  Array<CodeBlock> blocks;  ///< Ascending by offset.
  Array<std::uint8_t>
      pc_map;  ///< Packed pc map entries (packed_pc_map.hpp), superblock by superblock.
  Array<decoder::LoggedBlock> logged;
  Array<decoder::NearBranch> branches;
  Array<decoder::PackedExit> exits;  ///< By exit id, like the next two.
  Array<decoder::ExitWeight> weights;
  Array<ExitPlace> places;
  Array<PersistentIbEntry> ib_entries;        ///< Ascending by offset.
  Array<PersistentTranslation> translations;  ///< Ascending.
  /// Ids of exits that lead to another module of the same file.
  Array<std::uint32_t> crossing;
  /// The values that superblocks record (decoder::ValuePoints); these four are empty if they record
  /// none.
  Array<decoder::LoggedValue> values;
  Array<std::uint16_t> value_offsets;  ///< ValuePoint::offset of each value.
  Array<std::uint32_t> first_values;   ///< By superblock, like `logged`.
  Array<std::uint16_t> exit_values;    ///< By exit id.
};
template <typename Arrays, typename Use>
bool for_each_part(Arrays& arrays, Use use) {
  return use(arrays.modules) && use(arrays.code) && use(arrays.blocks) && use(arrays.pc_map) &&
         use(arrays.logged) && use(arrays.branches) && use(arrays.exits) && use(arrays.weights) &&
         use(arrays.places) && use(arrays.ib_entries) && use(arrays.translations) &&
         use(arrays.crossing) && use(arrays.values) && use(arrays.value_offsets) &&
         use(arrays.first_values) && use(arrays.exit_values);
}
template <typename T>
using PersistentSpan = std::span<const T>;
/// Views into the mapped file.
using PersistentView = PersistentArrays<PersistentSpan>;

/// All links of translations, by the start pc that they lead to. Sorting them takes longer than a
/// few passes over them: it pays once processes have made these (LoadedLinks).
struct LinkIndex {
  std::uint32_t passes = 0;
  std::vector<std::pair<TraceeAddr, std::uint32_t>> sorted;  ///< Target and link.
};

/// Its contents never change. Shared by all processes of the program.
class PersistentCode {
 public:
  [[nodiscard]] const PersistentView& parts() const { return view_; }
  /// Returns true if the translations record values (TranslateOptions::records_values).
  [[nodiscard]] bool records_values() const { return !view_.first_values.empty(); }
  /// Returns what the exit ids mean. `owner` keeps this object alive.
  [[nodiscard]] decoder::ExitTable::Base exits(std::shared_ptr<const void> owner) const;
  /// Returns the code offset of the translation of `start`; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint32_t> translation(TraceeAddr start) const;
  /// Returns the superblock that contains a code offset; null if none does.
  [[nodiscard]] const CodeBlock* block_at(std::uint64_t offset) const;
  /// Returns the pc map entry at an offset within the superblock; nullopt if there is none.
  [[nodiscard]] std::optional<arch::cpu::translate::PcMapEntry> map_entry(
      const CodeBlock& block, std::uint64_t within) const;

  /// Made by processes for later ones; it follows from the contents.
  [[nodiscard]] LinkIndex& link_index() const { return link_index_; }

  /// Reads a file's contents (persistent_file.hpp); null if they are damaged or were made by
  /// another build. Contents known to be whole are not validated. The bytes are not copied; `owner`
  /// keeps them alive.
  static std::shared_ptr<const PersistentCode> from_bytes(std::span<const std::uint8_t> bytes,
                                                          const std::string& key,
                                                          std::shared_ptr<const void> owner,
                                                          bool whole);

 private:
  PersistentCode() = default;
  [[nodiscard]] bool consistent() const;
  /// Returns true if the values of superblocks lie within their code, in order.
  [[nodiscard]] bool values_consistent(const decoder::ExitTable::Base& exits) const;

  PersistentView view_;
  std::shared_ptr<const void> owner_;  ///< Owner of the bytes in view_.
  mutable LinkIndex link_index_;
};

}  // namespace backtrail::tracee::cache
