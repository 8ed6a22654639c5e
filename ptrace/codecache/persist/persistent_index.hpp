// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Index of the translations to be kept, by address.

#include <cstddef>
#include <optional>
#include <vector>

#include "ptrace/codecache/memory/code_block.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/persist/persistent_code.hpp"
#include "ptrace/codecache/program/code_modules.hpp"

namespace backtrail::tracee::cache {

class PersistentIndex {
 public:
  /// Begins with the older translations, except those of modules whose place others have taken. At
  /// most `more` superblocks will be added.
  PersistentIndex(const PersistentModules& modules, const PersistentView& older, std::size_t more);

  /// Adds a superblock that is in use, or was until its module was unmapped. For each start pc the
  /// one with the highest offset counts. Ignores superblocks that are not made of one module's code
  /// alone.
  void add(const CodeBlock& block, const CodeRanges& ranges);
  /// Call after the last add(). The following functions require it.
  void complete();

  [[nodiscard]] const std::vector<CodeModule>& modules() const { return modules_; }
  [[nodiscard]] const std::vector<PersistentTranslation>& translations() const {
    return translations_;
  }
  [[nodiscard]] const std::vector<PersistentIbEntry>& ib_entries() const { return ib_entries_; }
  /// Returns the number of the module that contains the address, in modules(); modules().size() if
  /// none does.
  [[nodiscard]] std::size_t number_of(TraceeAddr address) const;
  /// Returns the code offset to which an exit of `start`'s superblock is linked from the start;
  /// nullopt if it is linked when first taken.
  [[nodiscard]] std::optional<std::uint32_t> linked(TraceeAddr start, TraceeAddr to) const;
  /// Returns true if the exit will be linked once both modules are mapped, which are of the same
  /// file.
  [[nodiscard]] bool crosses(TraceeAddr start, TraceeAddr to) const;

 private:
  /// Returns the code offset of the kept translation of a start pc.
  [[nodiscard]] std::optional<std::uint32_t> translation(TraceeAddr start) const;
  [[nodiscard]] const CodeModule* module_at(TraceeAddr address) const;
  /// Returns true for modules that the superblock's code may be of. At the addresses of a module
  /// that only older processes had, this one had another, of which nothing is kept.
  [[nodiscard]] bool may_be_of(const CodeModule& module, const CodeBlock& block) const;

  std::vector<CodeModule> modules_;  ///< Modules do not overlap; the ones that are mapped come
                                     ///< first.
  std::size_t present_ = 0;
  std::size_t seen_ = 0;  ///< Number of modules that this process has had. They come first.
  // Sorted arrays, because there are hundreds of thousands of entries when memory use is highest.
  std::vector<PersistentTranslation> translations_;
  std::vector<PersistentIbEntry> ib_entries_;
};

}  // namespace backtrail::tracee::cache
