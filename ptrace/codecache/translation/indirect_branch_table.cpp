// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/indirect_branch_table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;

IndirectBranchTable::IndirectBranchTable(EntryTable& table, CodeLinks& links,
                                         const Superblocks& superblocks, TraceeAddr dispatch)
    : table_{table}, links_{links}, superblocks_{superblocks}, dispatch_{dispatch} {}

const CodeBlock* IndirectBranchTable::superblock_at(TraceeAddr address) const {
  if (address == dispatch_) return nullptr;
  const std::uint64_t entry = links_.offset_of(address);
  const CodeBlock* block = superblocks_.at(entry);
  const bool is_entry = block != nullptr && block->has_ib_entry() &&
                        entry == block->offset + translate::kIbEntryOffset;
  damaged_ |= !is_entry;
  return is_entry ? block : nullptr;
}

template <typename Look>
void IndirectBranchTable::walk(TraceeAddr first, Look look) const {
  std::size_t most = superblocks_.total();
  for (TraceeAddr at = first; const CodeBlock* block = superblock_at(at);) {
    if (most-- == 0) {
      damaged_ = true;  // the chain leads back into itself
      return;
    }
    const std::uint64_t entry = links_.offset_of(at);
    at = next(entry);
    if (!look(entry, *block)) return;
  }
}

const CodeBlock* IndirectBranchTable::find(TraceeAddr start) const {
  const CodeBlock* found = nullptr;
  walk(table_[table_.index(start)], [&](std::uint64_t, const CodeBlock& block) {
    if (block.start == start) found = &block;
    return found == nullptr;
  });
  return found;
}

TraceeAddr IndirectBranchTable::first(TraceeAddr start) const {
  const TraceeAddr at = table_[table_.index(start)];
  return superblock_at(at) != nullptr ? at : dispatch_;
}

TraceeAddr IndirectBranchTable::next(std::uint64_t entry) const {
  return links_.address_of(links_.target_of(entry - CodeLinks::kBytes));
}

void IndirectBranchTable::set_next(std::uint64_t entry, TraceeAddr target) {
  links_.point(entry - CodeLinks::kBytes, target);
}

void IndirectBranchTable::open(TraceeAddr start, std::uint64_t entry) {
  table_.store(table_.index(start), links_.address_of(entry));
  make_fit(++open_);
}

void IndirectBranchTable::reopen(TraceeAddr start, std::uint64_t entry) {
  std::array<std::uint8_t, 2> beginning{};
  const std::uint32_t there = links_.load(entry);
  std::memcpy(beginning.data(), &there, beginning.size());
  if (beginning == translate::kClosedIbEntry) {
    begin_with(entry, translate::ib_entry_beginning(superblocks_.at(entry)->after_entry));
  }
  set_next(entry, first(start));
  open(start, entry);
}

void IndirectBranchTable::open_saved(std::span<const PersistentIbEntry> entries,
                                     const translate::Branch& module) {
  std::vector<bool> is_ours(table_.size());
  for (const auto& [start, entry] : entries) {
    if (!is_in(module, start)) continue;
    const std::size_t index = table_.index(start);
    const TraceeAddr before = table_[index];
    // The first one here leads to the dispatch stub.
    if (!is_ours[index] && before != dispatch_) set_next(entry, before);
    is_ours[index] = true;
    table_.store(index, links_.address_of(entry));
    ++open_;
  }
  make_fit(open_);
}

void IndirectBranchTable::close(TraceeAddr start, std::uint64_t entry) {
  const TraceeAddr at = links_.address_of(entry);
  const TraceeAddr after = next(entry);
  const std::size_t index = table_.index(start);
  if (table_[index] == at) {
    table_.store(index, after);
  } else {
    walk(table_[index], [&](std::uint64_t other, const CodeBlock&) {
      if (next(other) == at) set_next(other, after);
      return true;
    });
  }
  begin_with(entry, translate::kClosedIbEntry);
  if (open_ != 0) --open_;
}

void IndirectBranchTable::make_fit(std::size_t entries) {
  grow_to(EntryTable::size_for(entries));
}

void IndirectBranchTable::widen() {
  grow_to(translate::kTableEntries);
}

void IndirectBranchTable::grow_to(std::size_t size) {
  if (size <= table_.size()) return;
  std::vector<std::pair<TraceeAddr, std::uint64_t>> all;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const std::size_t first_here = all.size();
    walk(table_[i], [&](std::uint64_t entry, const CodeBlock& block) {
      all.emplace_back(block.start, entry);
      return !damaged_;
    });
    // Entries are put back from the oldest on, so that the newest comes first again.
    std::reverse(all.begin() + static_cast<std::ptrdiff_t>(first_here), all.end());
  }
  if (all.empty()) return table_.grow(size, dispatch_);
  std::vector<std::uint64_t> places(size, dispatch_.value());
  for (const auto& [start, entry] : all) {
    std::uint64_t& place = places[start.value() & (size - 1)];
    set_next(entry, TraceeAddr{place});
    place = links_.address_of(entry).value();
  }
  table_.replace(places);
}

void IndirectBranchTable::clear() {
  table_.fill(dispatch_);
  open_ = 0;
}

void IndirectBranchTable::begin_with(std::uint64_t entry,
                                     const std::array<std::uint8_t, 2>& bytes) {
  std::uint32_t beginning = links_.load(entry);
  std::memcpy(&beginning, bytes.data(), bytes.size());
  links_.store(entry, beginning);
}

}  // namespace backtrail::tracee::cache
