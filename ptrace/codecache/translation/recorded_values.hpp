// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where in their translations superblocks record values.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/code_block.hpp"

namespace backtrail::tracee::cache {

/// The code offsets of the values that the ExitTable lists (decoder::ValuePoints), in the same
/// order.
class RecordedValues {
 public:
  /// Takes over the offsets of loaded superblocks; call before the first add(). Borrows them.
  void load(std::span<const std::uint16_t> offsets) { loaded_ = offsets; }
  /// Adds a superblock's values here and, with its exits, which must have been added, to `exits`.
  /// Call for each superblock, in order, even if it records none.
  void add(std::uint32_t block, const arch::cpu::translate::Superblock& made,
           decoder::ExitTable& exits);
  /// Returns how many values are recorded when a thread is at an offset within the superblock.
  [[nodiscard]] std::size_t count_at(const CodeBlock& block, std::uint32_t offset,
                                     const arch::cpu::translate::PcMapEntry& map_entry,
                                     const decoder::ExitTable& exits) const;
  /// Returns the offsets that were added; valid until the next add().
  [[nodiscard]] std::span<const std::uint16_t> offsets() const { return offsets_; }

 private:
  [[nodiscard]] std::uint16_t offset_of(std::size_t value) const {
    return value < loaded_.size() ? loaded_[value] : offsets_[value - loaded_.size()];
  }

  std::span<const std::uint16_t> loaded_;
  std::vector<std::uint16_t> offsets_;
};

}  // namespace backtrail::tracee::cache
