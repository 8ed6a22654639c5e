// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/persistent_code.hpp"

#include <algorithm>

#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/persist/packed_pc_map.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"

namespace backtrail::tracee::cache {
namespace translate = arch::cpu::translate;

bool PersistentCode::consistent() const {
  const std::uint64_t code = view_.code.size();
  std::uint64_t behind = 0;
  for (const CodeBlock& block : view_.blocks) {
    if (block.offset < behind || block.size == 0 || block.row_bytes == 0) return false;
    behind = std::uint64_t{block.offset} + block.size;
    if (behind > code) return false;
    if (std::uint64_t{block.first_row} + block.row_bytes > view_.pc_map.size()) return false;
    if (block.after_entry >= block.size || block.logged >= view_.logged.size()) return false;
    if (block.side_exits_at > block.size) return false;
  }
  const auto link_fits = [=](std::uint64_t link) {
    return link < code && link + sizeof(std::uint32_t) <= code;
  };
  const decoder::ExitTable::Base all_exits = exits(nullptr);
  if (!decoder::ExitTable::is_consistent(all_exits) || !values_consistent(all_exits) ||
      view_.places.size() != view_.exits.size()) {
    return false;
  }
  for (const ExitPlace& place : view_.places) {
    if (!place.is_sound() || !link_fits(place.link())) return false;
  }
  for (const auto& [start, ib_entry] : view_.ib_entries) {
    // The indirect-branch entry must lie within a superblock.
    const CodeBlock* block = block_at(ib_entry);
    if (block == nullptr || !block->has_ib_entry() || block->start != start ||
        ib_entry != block->offset + translate::kIbEntryOffset ||
        block->after_entry <= translate::kIbEntryOffset) {
      return false;
    }
  }
  for (const auto& [start, offset] : view_.translations) {
    if (offset >= code) return false;
  }
  const auto is_exit = [&](std::uint32_t exit_id) { return exit_id < view_.exits.size(); };
  return std::is_sorted(view_.translations.begin(), view_.translations.end()) &&
         std::all_of(view_.crossing.begin(), view_.crossing.end(), is_exit);
}

bool PersistentCode::values_consistent(const decoder::ExitTable::Base& exits) const {
  if (view_.value_offsets.size() != view_.values.size()) return false;
  const decoder::ValuePoints points{exits.values};
  return std::all_of(view_.blocks.begin(), view_.blocks.end(), [&](const CodeBlock& block) {
    const auto offsets = view_.value_offsets.subspan(points.first_of(block.logged),
                                                     points.of_block(block.logged).size());
    return std::is_sorted(offsets.begin(), offsets.end()) &&
           (offsets.empty() || offsets.back() <= block.side_exits_at);
  });
}

decoder::ExitTable::Base PersistentCode::exits(std::shared_ptr<const void> owner) const {
  return {.blocks = view_.logged,
          .branches = view_.branches,
          .exits = view_.exits,
          .weights = view_.weights,
          .owner = std::move(owner),
          .values = {view_.values, view_.first_values, view_.exit_values}};
}

std::optional<std::uint32_t> PersistentCode::translation(TraceeAddr start) const {
  const auto found =
      std::lower_bound(view_.translations.begin(), view_.translations.end(), start,
                       [](const auto& each, TraceeAddr at) { return each.first < at; });
  if (found == view_.translations.end() || found->first != start) return std::nullopt;
  return found->second;
}

const CodeBlock* PersistentCode::block_at(std::uint64_t offset) const {
  const auto after =
      std::upper_bound(view_.blocks.begin(), view_.blocks.end(), offset,
                       [](std::uint64_t at, const CodeBlock& block) { return at < block.offset; });
  if (after == view_.blocks.begin()) return nullptr;
  const CodeBlock& block = *std::prev(after);
  return offset < std::uint64_t{block.offset} + block.size ? &block : nullptr;
}

std::optional<translate::PcMapEntry> PersistentCode::map_entry(const CodeBlock& block,
                                                               std::uint64_t within) const {
  return entry_at(view_.pc_map.subspan(block.first_row, block.row_bytes), block.start, within);
}

std::shared_ptr<const PersistentCode> PersistentCode::from_bytes(
    std::span<const std::uint8_t> bytes, const std::string& key, std::shared_ptr<const void> owner,
    bool whole) {
  const auto view = read_persistent(bytes, key, whole);
  if (!view) return nullptr;
  std::shared_ptr<PersistentCode> kept{new PersistentCode};
  kept->view_ = *view;
  kept->owner_ = std::move(owner);
  if (!whole && !kept->consistent()) return nullptr;
  return kept;
}

}  // namespace backtrail::tracee::cache
