// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/code_pages.hpp"

#include <algorithm>

#include "arch/base/page.hpp"

namespace backtrail::decoder {
namespace {

/// Most adjacent pages that are compared with one read.
constexpr std::size_t kPagesTogether = 64;

}  // namespace

const std::vector<std::uint8_t>& CodePages::page(TraceeAddr base) {
  if (base == newest_base_) return *newest_;
  const auto [found, is_new] = pages_.try_emplace(base);
  if (is_new) {
    found->second.resize(kPageBytes);
    found->second.resize(code_.read_code(base, found->second));
  }
  newest_base_ = base;
  newest_ = &found->second;
  return found->second;
}

std::size_t CodePages::read_code(TraceeAddr address, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const TraceeAddr at = address + done;
    if (at < address) break;
    const std::uint64_t offset = at.value() % kPageBytes;
    const std::vector<std::uint8_t>& bytes = page(at - offset);
    if (offset >= bytes.size()) break;
    const std::size_t count = std::min<std::size_t>(bytes.size() - offset, out.size() - done);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
    if (offset + count < kPageBytes) break;
  }
  return done;
}

bool CodePages::unchanged() {
  std::vector<std::uint8_t> now(kPageBytes * kPagesTogether);
  for (auto first = pages_.begin(); first != pages_.end();) {
    auto last = first;
    std::size_t size = 0;
    while (last != pages_.end() && size < now.size() && last->first == first->first + size) {
      // A page that ends early ends the run.
      const bool whole = last->second.size() == kPageBytes;
      size += kPageBytes;
      ++last;
      if (!whole) break;
    }
    const std::size_t count = code_.read_code(first->first, std::span{now}.first(size));
    for (std::size_t at = 0; first != last; ++first, at += kPageBytes) {
      const auto page =
          std::span{now}.first(std::min(count, at + kPageBytes)).subspan(std::min(count, at));
      if (std::equal(page.begin(), page.end(), first->second.begin(), first->second.end()))
        continue;
      pages_.clear();
      newest_base_ = TraceeAddr{1};
      return false;
    }
  }
  return true;
}

}  // namespace backtrail::decoder
