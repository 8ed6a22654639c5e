// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/exit_links.hpp"

#include <utility>

namespace backtrail::tracee::cache {

void ExitLinks::add(const arch::x86::translate::Exit& exit, std::uint64_t offset) {
  const std::uint64_t link = exit.link_offset == 0 ? 0 : offset + exit.link_offset;
  places_.push_back(ExitPlace::of(link, exit));
  next_.push_back(HeadTable::kNone);
}

void ExitLinks::list(std::uint32_t exit_id, TraceeAddr to) {
  const auto index = static_cast<std::uint32_t>(exit_id - loaded_.size());
  next_[index] = std::exchange(heads_.at(to).first_exit, index);
}

ExitPlace ExitLinks::place(std::uint32_t exit_id) const {
  if (is_loaded(exit_id)) return loaded_[exit_id];
  return places_[exit_id - loaded_.size()];
}

std::optional<std::uint32_t> ExitLinks::superblock(TraceeAddr head) const {
  const HeadTable::Entry* known = heads_.find(head);
  if (known == nullptr || known->block == HeadTable::kNone) return std::nullopt;
  return known->block;
}

void ExitLinks::set_superblock(TraceeAddr head, std::uint32_t index, TraceeAddr address) {
  HeadTable::Entry& entry = heads_.at(head);
  entry.block = index;
  point_all(entry, address);
}

void ExitLinks::remove_superblock(TraceeAddr head, TraceeAddr miss) {
  HeadTable::Entry& entry = heads_.at(head);
  entry.block = HeadTable::kNone;
  point_all(entry, miss);
}

void ExitLinks::point_all(const HeadTable::Entry& head, TraceeAddr target) {
  for (std::uint32_t exit = head.first_exit; exit != HeadTable::kNone; exit = next_[exit]) {
    links_.point(places_[exit].link(), target);
  }
}

}  // namespace backtrail::tracee::cache
