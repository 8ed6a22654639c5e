// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/unsaved_counts.hpp"

#include <algorithm>
#include <sstream>

#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/persist/note_file.hpp"

namespace backtrail::tracee::cache {
namespace {

std::string name_of(const std::string& key) {
  return kept_name(key, "code");
}

}  // namespace

void UnsavedCounts::read() {
  note_read_ = true;
  if (note_.empty()) return;
  std::istringstream note{read_note(note_).value_or("")};
  std::string name;
  std::size_t made = 0;
  // A count of this recorder is newer.
  while (note >> name >> made) counts_.emplace(name, made);
}

std::size_t UnsavedCounts::add(const std::string& key, std::size_t made, bool may_read_note) {
  if (!note_read_ && may_read_note) read();
  if (made != 0) has_news_ = true;
  return counts_[name_of(key)] += made;
}

void UnsavedCounts::clear(const std::string& key) {
  if (counts_.erase(name_of(key)) != 0) has_news_ = true;
}

void UnsavedCounts::save() {
  has_news_ = false;
  if (note_.empty()) return;
  std::vector<std::pair<std::string, std::size_t>> largest{counts_.begin(), counts_.end()};
  std::erase_if(largest, [](const auto& count) { return count.second == 0; });
  std::ranges::stable_sort(largest, std::ranges::greater{},
                           [](const auto& count) { return count.second; });
  if (largest.size() > kMostLines) largest.resize(kMostLines);
  std::ostringstream note;
  for (const auto& [name, made] : largest) note << name << ' ' << made << '\n';
  write_note(note_, note.str());
}

}  // namespace backtrail::tracee::cache
