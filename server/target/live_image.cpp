// SPDX-License-Identifier: Apache-2.0
#include "server/target/live_image.hpp"

#include <algorithm>

#include <elf.h>

#include "arch/base/page.hpp"

namespace backtrail::server {
namespace {

/// Returns true for memory that changes without a store of the program; the recorder's is shared.
bool is_left_out(const tracee::MapEntry& map) {
  return map.shared || map.path.starts_with("[vvar") || map.path == "[vsyscall]";
}

/// Returns the element of a sorted list whose range [begin, end) contains `address`; null if none.
template <typename List, typename Begin, typename End>
auto containing(const List& list, TraceeAddr address, Begin begin, End end) {
  const auto after = std::ranges::upper_bound(list, address, {}, begin);
  if (after == list.begin() || address >= end(*(after - 1))) return decltype(&*after){nullptr};
  return &*(after - 1);
}

}  // namespace

LiveImage::LiveImage(tracee::Process& process, const std::vector<tracee::MapEntry>& maps,
                     TraceeAddr vdso)
    : process_{process}, vdso_{vdso} {
  for (const tracee::MapEntry& map : maps) {
    if (is_left_out(map)) continue;
    const std::uint32_t flags = (map.read ? std::uint32_t{PF_R} : 0U) |
                                (map.write ? std::uint32_t{PF_W} : 0U) |
                                (map.execute ? std::uint32_t{PF_X} : 0U);
    segments_.push_back({TraceeAddr{map.start}, map.end - map.start, flags, {}});
    if (map.path.empty() || map.path.starts_with('[')) continue;
    mappings_.push_back({TraceeAddr{map.start}, TraceeAddr{map.end}, map.offset, map.path});
  }
}

const decoder::CoreMapping* LiveImage::mapping_at(TraceeAddr address) const {
  return containing(mappings_, address, &decoder::CoreMapping::start,
                    [](const decoder::CoreMapping& mapping) { return mapping.end; });
}

const decoder::CoreSegment* LiveImage::segment_at(TraceeAddr address) const {
  return containing(
      segments_, address, &decoder::CoreSegment::start,
      [](const decoder::CoreSegment& segment) { return segment.start + segment.memory_bytes; });
}

const std::vector<std::uint8_t>& LiveImage::page(std::uint64_t begin) const {
  const auto [place, is_new] = pages_.try_emplace(begin);
  if (is_new) {
    place->second.resize(kPageBytes);
    place->second.resize(process_.read_memory(TraceeAddr{begin}, place->second));
  }
  return place->second;
}

std::size_t LiveImage::read(TraceeAddr address, std::span<std::uint8_t> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t at = address.value() + done;
    const std::vector<std::uint8_t>& bytes = page(page_begin(at));
    const std::size_t offset = at - page_begin(at);
    if (offset >= bytes.size()) break;
    const std::size_t count = std::min(out.size() - done, bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
  return done;
}

}  // namespace backtrail::server
