// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/superblocks.hpp"

#include <algorithm>
#include <utility>

#include "arch/base/page.hpp"
#include "ptrace/codecache/persist/packed_pc_map.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

std::uint64_t first_page(const translate::Branch& range) {
  return range.first.value() / kPageBytes;
}

std::uint64_t last_page(const translate::Branch& range) {
  return (range.second.value() - 1) / kPageBytes;
}

/// Returns the number of leading blocks for which `is_before` holds; it must hold for no later one.
template <typename IsBefore>
std::size_t count_before(const ChunkedArray<CodeBlock>& blocks, IsBefore is_before) {
  std::size_t begin = 0;
  std::size_t end = blocks.size();
  while (begin < end) {
    const std::size_t middle = (begin + end) / 2;
    if (is_before(blocks[middle])) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace

void Superblocks::load(std::shared_ptr<const PersistentCode> loaded) {
  loaded_bytes_ = loaded->parts().code.size();
  loaded_rows_ = static_cast<std::uint32_t>(loaded->parts().pc_map.size());
  loaded_ = std::move(loaded);
}

std::uint32_t Superblocks::add(CodeBlock block, std::span<const translate::PcMapEntry> pc_map,
                               std::span<const translate::Branch> ranges) {
  std::vector<std::uint8_t>& packed = packing_;
  packed.clear();
  pack_pc_map(pc_map, block.start, packed);
  block.row_bytes = static_cast<std::uint32_t>(packed.size());
  pack_ranges(ranges, block.start, packed);
  block.range_bytes = static_cast<std::uint16_t>(packed.size() - block.row_bytes);
  block.first_row = loaded_rows_ + static_cast<std::uint32_t>(packed_.append(packed));
  if (block.is_made_here()) ++made_here_;
  const auto index = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back(block);
  std::uint64_t noted = ~std::uint64_t{0};
  for (const translate::Branch& range : ranges) {
    for (std::uint64_t page = first_page(range); page <= last_page(range); ++page) {
      if (page != noted) by_page_[page].push_back(index);
      noted = page;
    }
  }
  return index;
}

void Superblocks::clear() {
  blocks_.clear();
  packed_.clear();
  by_page_.clear();
  made_here_ = 0;
  loaded_.reset();
  loaded_bytes_ = 0;
  loaded_rows_ = 0;
}

const CodeBlock* Superblocks::at(std::uint64_t offset) const {
  if (is_loaded(offset)) return loaded_->block_at(offset);
  const auto index = index_at(offset);
  return index ? &blocks_[*index] : nullptr;
}

std::optional<std::uint32_t> Superblocks::index_at(std::uint64_t offset) const {
  const std::size_t count =
      count_before(blocks_, [=](const CodeBlock& block) { return block.offset <= offset; });
  if (count == 0) return std::nullopt;
  const CodeBlock& found = blocks_[count - 1];
  if (offset >= std::uint64_t{found.offset} + found.size) return std::nullopt;
  return static_cast<std::uint32_t>(count - 1);
}

const CodeBlock* Superblocks::with_id(std::uint32_t id) const {
  if (const auto index = index_of(id)) return &blocks_[*index];
  if (!loaded_) return nullptr;
  const auto& blocks = loaded_->parts().blocks;
  const auto found = std::lower_bound(
      blocks.begin(), blocks.end(), id,
      [](const CodeBlock& block, std::uint32_t other) { return block.logged < other; });
  return found != blocks.end() && found->logged == id ? &*found : nullptr;
}

std::optional<std::uint32_t> Superblocks::index_of(std::uint32_t id) const {
  const std::size_t index =
      count_before(blocks_, [=](const CodeBlock& block) { return block.logged < id; });
  if (index == blocks_.size() || blocks_[index].logged != id) return std::nullopt;
  return static_cast<std::uint32_t>(index);
}

std::vector<std::uint32_t> Superblocks::made_of(TraceeAddr begin, TraceeAddr end) {
  std::vector<std::uint32_t> found;
  const auto look_at = [&](std::vector<std::uint32_t>& blocks) {
    // Dropped ones are removed: pages of a JIT may have had thousands.
    std::erase_if(blocks, [this](std::uint32_t index) {
      return blocks_[index].is_dropped() && !blocks_[index].is_unloaded();
    });
    for (const std::uint32_t index : blocks) {
      const CodeRanges ranges = ranges_of(blocks_[index]);
      const bool overlaps = std::any_of(ranges.begin(), ranges.end(), [=](const auto& range) {
        return range.first < end && begin < range.second;
      });
      if (overlaps) found.push_back(index);
    }
  };
  const std::uint64_t first = first_page({begin, end});
  const std::uint64_t last = last_page({begin, end});
  if (last - first < by_page_.size()) {
    for (std::uint64_t page = first; page <= last; ++page) {
      if (const auto there = by_page_.find(page); there != by_page_.end()) look_at(there->second);
    }
  } else {
    for (auto& [page, blocks] : by_page_) {
      if (first <= page && page <= last) look_at(blocks);
    }
  }
  return found;
}

void Superblocks::forget_ranges(std::uint32_t index) {
  for (const translate::Branch& range : ranges_of(blocks_[index])) {
    const auto there = by_page_.find(first_page(range));
    if (there != by_page_.end()) std::erase(there->second, index);
  }
}

CodeRanges Superblocks::ranges_of(const CodeBlock& block) const {
  const std::size_t first = block.first_row - loaded_rows_ + block.row_bytes;
  return unpack_ranges(packed_.piece(first, block.range_bytes), block.start);
}

std::optional<translate::PcMapEntry> Superblocks::map_entry(const CodeBlock& block,
                                                            std::uint64_t within) const {
  if (is_loaded(block.offset)) return loaded_->map_entry(block, within);
  const auto pc_map = packed_.piece(block.first_row - loaded_rows_, block.row_bytes);
  return entry_at(pc_map, block.start, within);
}

std::uint64_t Superblocks::source_bytes() const {
  CodeRanges ranges;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const CodeRanges more = ranges_of(blocks_[i]);
    ranges.insert(ranges.end(), more.begin(), more.end());
  }
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t bytes = 0;
  TraceeAddr counted;
  for (const auto& [begin, end] : ranges) {
    if (end <= counted) continue;
    bytes += end - std::max(begin, counted);
    counted = end;
  }
  return bytes;
}

}  // namespace backtrail::tracee::cache
