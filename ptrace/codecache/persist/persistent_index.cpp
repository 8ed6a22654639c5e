// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/persistent_index.hpp"

#include <algorithm>

#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {
namespace {

const CodeModule* find(std::span<const CodeModule> modules, TraceeAddr address) {
  const auto found = std::find_if(modules.begin(), modules.end(), [=](const CodeModule& module) {
    return module.contains(address);
  });
  return found != modules.end() ? &*found : nullptr;
}

}  // namespace

PersistentIndex::PersistentIndex(const PersistentModules& modules, const PersistentView& older,
                                 std::size_t more)
    : modules_{modules.present}, present_{modules.present.size()} {
  const auto add_free = [this](const CodeModule& other) {
    const bool taken = std::any_of(modules_.begin(), modules_.end(), [&](const CodeModule& module) {
      return module.overlaps(other.begin, other.end);
    });
    if (!taken) modules_.push_back(other);
  };
  for (auto gone = modules.gone.rbegin(); gone != modules.gone.rend(); ++gone) add_free(*gone);
  seen_ = modules_.size();
  for (const CodeModule& old : older.modules) add_free(old);
  const auto take_over = [&](const auto& list, auto& into) {
    into.reserve(list.size() + more);
    for (const auto& [start, offset] : list) {
      const CodeModule* was = find(older.modules, start);
      const CodeModule* now = module_at(start);
      if (was == nullptr || now == nullptr || !was->is_part_of(*now)) continue;
      into.emplace_back(start, offset);
    }
  };
  take_over(older.translations, translations_);
  take_over(older.ib_entries, ib_entries_);
}

const CodeModule* PersistentIndex::module_at(TraceeAddr address) const {
  return find(modules_, address);
}

std::size_t PersistentIndex::number_of(TraceeAddr address) const {
  const CodeModule* module = module_at(address);
  return module != nullptr ? static_cast<std::size_t>(module - modules_.data()) : modules_.size();
}

bool PersistentIndex::may_be_of(const CodeModule& module, const CodeBlock& block) const {
  const auto number = static_cast<std::size_t>(&module - modules_.data());
  return number < (block.is_unloaded() ? seen_ : present_);
}

void PersistentIndex::add(const CodeBlock& block, const CodeRanges& ranges) {
  const CodeModule* module = module_at(block.start);
  if (module == nullptr || !may_be_of(*module, block)) return;
  const bool alone = std::all_of(ranges.begin(), ranges.end(), [=](const auto& range) {
    return module->begin <= range.first && range.second <= module->end;
  });
  if (!alone) return;
  if (block.has_ib_entry()) {
    ib_entries_.emplace_back(block.start, block.offset + arch::cpu::translate::kIbEntryOffset);
  } else {
    translations_.emplace_back(block.start, block.offset);
  }
}

void PersistentIndex::complete() {
  const auto keep_newest = [](auto& list) {
    std::sort(list.begin(), list.end());
    const auto newest = std::unique(list.rbegin(), list.rend(), [](const auto& a, const auto& b) {
      return a.first == b.first;
    });
    list.erase(list.begin(), newest.base());
  };
  keep_newest(translations_);
  keep_newest(ib_entries_);
  std::sort(
      ib_entries_.begin(), ib_entries_.end(),
      [](const PersistentIbEntry& a, const PersistentIbEntry& b) { return a.second < b.second; });
}

std::optional<std::uint32_t> PersistentIndex::translation(TraceeAddr start) const {
  const auto found =
      std::lower_bound(translations_.begin(), translations_.end(), PersistentTranslation{start, 0});
  if (found == translations_.end() || found->first != start) return std::nullopt;
  return found->second;
}

bool PersistentIndex::crosses(TraceeAddr start, TraceeAddr to) const {
  const CodeModule* from = module_at(start);
  if (from == nullptr || from->contains(to)) return false;
  const CodeModule* there = module_at(to);
  return there != nullptr && there->is_beside(*from) && translation(to);
}

std::optional<std::uint32_t> PersistentIndex::linked(TraceeAddr start, TraceeAddr to) const {
  const CodeModule* from = module_at(start);
  if (from == nullptr || !from->contains(to)) return std::nullopt;
  return translation(to);
}

}  // namespace backtrail::tracee::cache
