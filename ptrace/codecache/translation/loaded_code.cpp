// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/loaded_code.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

bool is_in_any(const CodeRanges& modules, TraceeAddr address) {
  return std::any_of(modules.begin(), modules.end(),
                     [=](const translate::Branch& module) { return is_in(module, address); });
}

}  // namespace

void LoadedCode::load(std::shared_ptr<const PersistentCode> loaded,
                      std::shared_ptr<const decoder::ExitTable> exits) {
  loaded_ = std::move(loaded);
  exits_ = std::move(exits);
  usable_ = true;
}

void LoadedCode::clear() {
  usable_ = false;
  active_.clear();
}

bool LoadedCode::is_active(TraceeAddr address) const {
  return is_in_any(active_, address);
}

std::optional<std::uint64_t> LoadedCode::translation(TraceeAddr start) const {
  if (!is_active(start)) return std::nullopt;
  return loaded_->translation(start);
}

void LoadedCode::activate(const translate::Branch& module,
                          const FindTranslation& find_translation) {
  active_.push_back(module);
  const bool comes_back = std::erase(left_, module) != 0;
  if (comes_back) links_.restore(module);
  const auto& entries = loaded_->parts().ib_entries;
  table_.make_fit(entries.size());
  if (!comes_back && table_.size() == EntryTable::size_for(entries.size())) {
    table_.open_saved(entries, module);
  } else {
    for (const auto& [start, entry] : entries) {
      if (is_in(module, start)) table_.reopen(start, entry);
    }
  }
  link_crossing(module, find_translation);
}

void LoadedCode::link_crossing(const translate::Branch& module,
                               const FindTranslation& find_translation) {
  for (const std::uint32_t exit_id : loaded_->parts().crossing) {
    const auto exit = *exits_->find(exit_id);
    if (!is_in(module, exit.to) && !is_in(module, exit.block.start)) continue;
    if (!is_active(exit.to) || !is_active(exit.block.start)) continue;
    const std::uint32_t link = loaded_->parts().places[exit_id].link();
    const auto translation = find_translation(exit.to);
    if (link != 0 && translation) links_.lead(link, *translation);
  }
}

bool LoadedCode::deactivate(TraceeAddr begin, TraceeAddr end) {
  CodeRanges gone;
  std::erase_if(active_, [&](const translate::Branch& module) {
    if (module.second <= begin || end <= module.first) return false;
    gone.push_back(module);
    return true;
  });
  if (gone.empty()) return false;
  left_.insert(left_.end(), gone.begin(), gone.end());
  links_.release_modules(gone);
  for (const auto& [start, entry] : loaded_->parts().ib_entries) {
    if (is_in_any(gone, start)) table_.close(start, entry);
  }
  return true;
}

}  // namespace backtrail::tracee::cache
