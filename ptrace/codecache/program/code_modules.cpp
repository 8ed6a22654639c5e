// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_modules.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {
namespace {

bool same(const ExecutableMap::Range& a, const ExecutableMap::Range& b) {
  return a.begin == b.begin && a.end == b.end && a.offset == b.offset && a.inode == b.inode &&
         a.path == b.path && a.may_change == b.may_change;
}

}  // namespace

bool CodeModules::knows(const ExecutableMap::Range& range) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const Known& known) { return same(known.range, range); });
}

std::optional<CodeModule> CodeModules::find(const ExecutableMap::Range& range) const {
  const auto found =
      std::ranges::find_if(known_, [&](const Known& known) { return same(known.range, range); });
  return found != known_.end() ? found->module : std::nullopt;
}

std::vector<CodeModule> CodeModules::add(const ExecutableMap::Range& range,
                                         const std::optional<CodeModule>& module) {
  known_.push_back({range, module});
  std::vector<CodeModule> displaced;
  if (!module) return displaced;
  // The rest of a module of which a part is mapped again.
  std::vector<Gone> rest;
  std::erase_if(gone_, [&](const Gone& gone) {
    if (!gone.module.overlaps(module->begin, module->end)) return false;
    if (!gone.module.is_beside(*module)) {
      displaced.push_back(gone.module);
      return true;
    }
    if (gone.module.begin < module->begin) {
      rest.push_back(gone);
      rest.back().module.end = module->begin;
    }
    if (module->end < gone.module.end) {
      rest.push_back(gone);
      rest.back().module.begin = module->end;
      rest.back().module.file_offset += module->end - gone.module.begin;
    }
    return true;
  });
  gone_.insert(gone_.end(), rest.begin(), rest.end());
  return displaced;
}

template <typename Lost>
std::vector<CodeModule> CodeModules::lose_if(Lost lost) {
  std::vector<CodeModule> result;
  std::erase_if(known_, [&](const Known& known) {
    if (!lost(known.range)) return false;
    if (known.module) {
      result.push_back(*known.module);
      gone_.push_back({*known.module, known.range.path});
    }
    return true;
  });
  return result;
}

std::vector<CodeModule> CodeModules::lose(TraceeAddr begin, TraceeAddr end) {
  return lose_if(
      [=](const ExecutableMap::Range& range) { return range.begin < end && begin < range.end; });
}

std::vector<CodeModule> CodeModules::lose_all_but(const Ranges& ranges) {
  return lose_if([&](const ExecutableMap::Range& range) {
    return std::none_of(ranges.begin(), ranges.end(),
                        [&](const ExecutableMap::Range& now) { return same(range, now); });
  });
}

bool CodeModules::keeps(TraceeAddr begin, TraceeAddr end) const {
  return std::any_of(known_.begin(), known_.end(), [=](const Known& known) {
    return known.module && known.module->overlaps(begin, end);
  });
}

PersistentModules CodeModules::kept() const {
  PersistentModules kept;
  for (const Gone& gone : gone_) kept.gone.push_back(gone.module);
  for (const Known& known : known_) {
    if (known.module) kept.present.push_back(*known.module);
  }
  return kept;
}

void CodeModules::forget_if(
    const std::function<bool(const CodeModule&, const std::string&)>& changed) {
  for (Known& known : known_) {
    if (known.module && changed(*known.module, known.range.path)) known.module.reset();
  }
  std::erase_if(gone_, [&](const Gone& gone) { return changed(gone.module, gone.path); });
}

}  // namespace backtrail::tracee::cache
