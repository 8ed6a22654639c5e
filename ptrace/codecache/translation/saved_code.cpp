// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/saved_code.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/check.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/entry_table.hpp"
#include "ptrace/codecache/persist/persistent_index.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

/// Returns the loaded part followed by the new ones.
template <typename T>
PersistentPieceList<T> joined(std::span<const T> old, PersistentPieceList<T> more) {
  more.insert(more.begin(), old);
  return more;
}

PersistentIndex index_of(const CodeToSave& what, const PersistentModules& modules) {
  PersistentIndex index{modules, what.older, what.superblocks.size()};
  for (std::uint32_t i = 0; i < what.superblocks.size(); ++i) {
    const CodeBlock& block = what.superblocks[i];
    if (what.without_calls && block.comes_to_call()) continue;
    if (!block.is_dropped() || block.is_unloaded())
      index.add(block, what.superblocks.ranges_of(block));
  }
  index.complete();
  return index;
}

/// Restores the beginning of each closed indirect-branch entry.
void open_entries(const CodeToSave& what, const PersistentIndex& index,
                  std::span<std::uint8_t> code) {
  for (const auto& [start, entry] : index.ib_entries()) {
    const auto there = code.subspan(entry, translate::kClosedIbEntry.size());
    if (!std::equal(there.begin(), there.end(), translate::kClosedIbEntry.begin())) continue;
    const CodeBlock* block = what.superblocks.at(entry);
    BT_CHECK(block != nullptr);
    const auto alive = translate::ib_entry_beginning(block->after_entry);
    std::copy(alive.begin(), alive.end(), there.begin());
  }
}

/// Leads each indirect-branch entry to the one before it of its module that shares its place in the
/// table, as IndirectBranchTable::open_saved() needs them.
void chain_entries(const CodeToSave& what, const PersistentIndex& index,
                   std::span<std::uint8_t> code) {
  const std::size_t size = EntryTable::size_for(index.ib_entries().size());
  std::unordered_map<std::uint64_t, std::uint32_t> newest;  // by module and place
  for (const auto& [start, entry] : index.ib_entries()) {
    const std::uint64_t place = EntryTable::index_in(size, start);
    const auto [at, is_first] = newest.try_emplace(index.number_of(start) * size + place, entry);
    const TraceeAddr next = is_first ? what.dispatch : what.links.address_of(at->second);
    at->second = entry;
    const std::uint64_t link = entry - CodeLinks::kBytes;
    const std::uint32_t distance = what.links.distance_to(link, next);
    std::memcpy(code.subspan(link).data(), &distance, sizeof distance);
  }
}

/// Links each exit within its module, and leads others to the dispatch stub. Returns the exits that
/// may be linked later, when the modules at both ends are active.
std::vector<std::uint32_t> link_exits(const CodeToSave& what, const PersistentIndex& index,
                                      std::span<std::uint8_t> code) {
  std::vector<std::uint32_t> crossing;
  for (std::uint32_t exit_id = 0; exit_id < what.exits.next_exit_id(); ++exit_id) {
    const ExitPlace place = what.exit_links.place(exit_id);
    if (place.link() == 0) continue;
    const auto exit = *what.exits.find(exit_id);
    if (place.kind(exit.kind) == translate::ExitKind::kStale) continue;
    const auto translation = index.linked(exit.block.start, exit.to);
    const std::uint32_t distance = what.links.distance_to(
        place.link(), translation ? what.links.address_of(*translation) : what.miss);
    std::memcpy(code.subspan(place.link()).data(), &distance, sizeof distance);
    if (!translation && index.crosses(exit.block.start, exit.to)) crossing.push_back(exit_id);
  }
  return crossing;
}

}  // namespace

void save_code(const CodeToSave& what, const PersistentModules& modules,
               std::span<std::uint8_t> code,
               const std::function<void(const PersistentPieces&)>& use) {
  const PersistentIndex index = index_of(what, modules);
  open_entries(what, index, code);
  chain_entries(what, index, code);
  const auto crossing = link_exits(what, index, code);
  const PersistentView& old = what.older;
  const decoder::ValuePoints::Base values = what.exits.values().added();
  what.exits.with_added([&](auto logged, auto branches, auto exits, auto weights) {
    use({.modules = {index.modules()},
         .code = {code},
         .blocks = joined(old.blocks, what.superblocks.blocks()),
         .pc_map = joined(old.pc_map, what.superblocks.packed()),
         .logged = joined(old.logged, logged),
         .branches = joined(old.branches, branches),
         .exits = joined(old.exits, exits),
         .weights = {old.weights, weights},
         .places = joined(old.places, what.exit_links.places()),
         .ib_entries = {index.ib_entries()},
         .translations = {index.translations()},
         .crossing = {crossing},
         .values = {old.values, values.values},
         .value_offsets = {old.value_offsets, what.values.offsets()},
         .first_values = {old.first_values, values.first},
         .exit_values = {old.exit_values, values.counts}});
  });
}

}  // namespace backtrail::tracee::cache
