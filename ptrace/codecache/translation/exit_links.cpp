// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/exit_links.hpp"

#include <utility>

namespace backtrail::tracee::cache {

void ExitLinks::add(const arch::cpu::translate::Exit& exit, std::uint64_t offset) {
  const std::uint64_t link = exit.link_offset == 0 ? 0 : offset + exit.link_offset;
  places_.push_back(ExitPlace::of(link, exit));
  next_.push_back(StartTable::kNone);
}

void ExitLinks::list(std::uint32_t exit_id, TraceeAddr to) {
  const auto index = static_cast<std::uint32_t>(exit_id - loaded_.size());
  next_[index] = std::exchange(starts_.at(to).first_exit, index);
}

ExitPlace ExitLinks::place(std::uint32_t exit_id) const {
  if (is_loaded(exit_id)) return loaded_[exit_id];
  return places_[exit_id - loaded_.size()];
}

void ExitLinks::set_superblock(TraceeAddr start, std::uint32_t index, TraceeAddr address) {
  StartTable::Entry& entry = starts_.at(start);
  entry.block = index;
  point_all(entry, address);
}

void ExitLinks::remove_superblock(TraceeAddr start, TraceeAddr miss) {
  StartTable::Entry& entry = starts_.at(start);
  entry.block = StartTable::kNone;
  point_all(entry, miss);
}

void ExitLinks::point_all(const StartTable::Entry& start, TraceeAddr target) {
  for (std::uint32_t exit = start.first_exit; exit != StartTable::kNone; exit = next_[exit]) {
    links_.point(places_[exit].link(), target);
  }
}

}  // namespace backtrail::tracee::cache
