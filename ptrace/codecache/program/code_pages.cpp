// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_pages.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {
namespace {

constexpr std::size_t kMostPages = 1024;

}  // namespace

void CodePages::forget(TraceeAddr at) {
  const std::uint64_t start = page_begin(at.value());
  pages_.erase(start);
  pages_.erase(start + kPageBytes);
  last_ = nullptr;
}

const CodePages::Page& CodePages::page_at(std::uint64_t start) {
  if (last_ != nullptr && last_start_ == start) return *last_;
  auto found = pages_.find(start);
  if (found == pages_.end()) {
    if (pages_.size() >= kMostPages) pages_.clear();
    found = pages_.emplace(start, Page{}).first;
    found->second.readable = reader_(TraceeAddr{start}, found->second.bytes);
  }
  last_ = &found->second;
  last_start_ = start;
  return *last_;
}

std::span<const std::uint8_t> CodePages::view(TraceeAddr at) {
  const std::uint64_t start = page_begin(at.value());
  const Page& page = page_at(start);
  const std::uint64_t offset = at.value() - start;
  return std::span{page.bytes}.first(page.readable).subspan(std::min(offset, page.readable));
}

std::size_t CodePages::read(TraceeAddr at, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t address = at.value() + done;
    const std::uint64_t start = page_begin(address);
    const Page& page = page_at(start);
    const std::uint64_t offset = address - start;
    if (offset >= page.readable) break;
    const std::size_t count = std::min<std::size_t>(out.size() - done, page.readable - offset);
    std::copy_n(page.bytes.begin() + static_cast<std::ptrdiff_t>(offset), count,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
  return done;
}

}  // namespace backtrail::tracee::cache
