// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/protected_pages.hpp"

#include <algorithm>

namespace backtrail::tracee::cache {
namespace {

/// A page whose protection did not pay has to run this many times longer each time. Making its
/// superblocks anew costs as much as some thousand samples gain.
constexpr std::uint32_t kPatienceFactor = 16;
constexpr std::uint32_t kMostPatience = 16384;
/// Each run of write-protected pages costs two mappings; the kernel allows 65530.
constexpr std::size_t kMostProtected = 4096;
constexpr std::size_t kMostCandidates = 16384;

}  // namespace

void ProtectedPages::ran(TraceeAddr at) {
  if (candidates_.size() >= kMostCandidates) candidates_.clear();
  Candidate& candidate = candidates_[page_of(at)];
  if (contains(at)) {
    candidate.credit = std::min(candidate.credit + 1, kMostCredit);
    return;
  }
  ++candidate.seen;
  seen_now_.push_back(page_of(at));
}

std::vector<TraceeAddr> ProtectedPages::take_due(
    const std::function<std::uint64_t(TraceeAddr)>& content) {
  std::sort(seen_now_.begin(), seen_now_.end());
  seen_now_.erase(std::unique(seen_now_.begin(), seen_now_.end()), seen_now_.end());
  std::vector<TraceeAddr> due;
  for (const std::uint64_t page : seen_now_) {
    const auto found = candidates_.find(page);
    if (found == candidates_.end()) continue;
    Candidate& candidate = found->second;
    if (candidate.content && candidate.seen < candidate.needed) continue;
    const TraceeAddr at{page * kPageBytes};
    const std::uint64_t now = content(at);
    if (candidate.content == now) {
      if (protected_.size() + due.size() < kMostProtected) due.push_back(at);
    } else {
      candidate.content = now;
      candidate.seen = 0;
    }
  }
  seen_now_.clear();
  return due;
}

void ProtectedPages::add(const Range& pages) {
  for (std::uint64_t page = page_of(pages.first); page < page_of(pages.second); ++page) {
    protected_.insert(page);
  }
}

bool ProtectedPages::written(TraceeAddr at) {
  Candidate& candidate = candidates_[page_of(at)];
  candidate.credit -= kWriteCost;
  if (candidate.credit > 0) return false;
  put_off(at);
  candidate.credit = kFirstCredit;
  return true;
}

void ProtectedPages::put_off(TraceeAddr at) {
  Candidate& candidate = candidates_[page_of(at)];
  candidate.needed = std::min(candidate.needed * kPatienceFactor, kMostPatience);
  candidate.content.reset();
  candidate.seen = 0;
}

bool ProtectedPages::is_kept(TraceeAddr at) const {
  if (!contains(at)) return false;
  const auto opening = open_.find(page_of(at));
  if (opening == open_.end()) return true;
  opening->second.asked = true;
  return false;
}

bool ProtectedPages::close(TraceeAddr page) {
  const auto opening = open_.find(page_of(page));
  if (opening == open_.end()) return false;
  const bool asked = opening->second.asked;
  if (--opening->second.times == 0) open_.erase(opening);
  return asked;
}

void ProtectedPages::remove(const Range& pages) {
  protected_.erase(protected_.lower_bound(page_of(pages.first)),
                   protected_.lower_bound(page_of(pages.second + (kPageBytes - 1))));
}

std::vector<ProtectedPages::Range> ProtectedPages::within(TraceeAddr begin, TraceeAddr end) const {
  std::vector<TraceeAddr> pages;
  for (auto page = protected_.lower_bound(page_of(begin));
       page != protected_.end() && TraceeAddr{*page * kPageBytes} < end; ++page) {
    pages.emplace_back(*page * kPageBytes);
  }
  return join_pages(pages);
}

std::vector<ProtectedPages::Range> join_pages(const std::vector<TraceeAddr>& pages) {
  std::vector<ProtectedPages::Range> ranges;
  for (const TraceeAddr page : pages) {
    if (!ranges.empty() && ranges.back().second == page) {
      ranges.back().second = page + kPageBytes;
    } else {
      ranges.emplace_back(page, page + kPageBytes);
    }
  }
  return ranges;
}

}  // namespace backtrail::tracee::cache
