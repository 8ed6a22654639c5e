// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides which writable code pages are worth write-protecting, so that superblocks made of them
/// need not compare the bytes they were made of.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/page.hpp"

namespace backtrail::tracee::cache {

class ProtectedPages {
 public:
  /// [begin, end), in whole pages.
  using Range = std::pair<TraceeAddr, TraceeAddr>;

  /// Notes that code at this address runs often: it was in a sample of a thread's log.
  void ran(TraceeAddr at);
  /// Returns the pages that have run often enough and stayed the same meanwhile; the caller may
  /// write-protect them. `content` returns a value that identifies a page's contents.
  std::vector<TraceeAddr> take_due(const std::function<std::uint64_t(TraceeAddr)>& content);

  /// Call when pages were write-protected.
  void add(const Range& pages);
  /// Call when the program writes to a write-protected page. Returns true if writes outweigh
  /// execution, so that protection should be dropped; the page then has to run longer before it is
  /// due again.
  bool written(TraceeAddr at);
  /// Call if a due page cannot be write-protected now; it then has to run longer before it is due
  /// again.
  void put_off(TraceeAddr at);
  /// Call when the page is unprotected for a moment. Superblocks made of it meanwhile must not rely
  /// on the protection.
  void open(TraceeAddr page) { ++open_[page_of(page)].times; }
  /// Ends open(). Returns true if is_kept() was asked about the page meanwhile.
  bool close(TraceeAddr page);
  /// Returns true if the page is write-protected and not open, so that no write to it goes unseen.
  [[nodiscard]] bool is_kept(TraceeAddr at) const;
  /// Call when protection of pages was dropped.
  void remove(const Range& pages);

  [[nodiscard]] bool contains(TraceeAddr at) const { return protected_.contains(page_of(at)); }
  [[nodiscard]] bool empty() const { return protected_.empty(); }
  [[nodiscard]] std::size_t size() const { return protected_.size(); }
  /// Returns the write-protected ranges in [begin, end), adjacent pages joined.
  [[nodiscard]] std::vector<Range> within(TraceeAddr begin, TraceeAddr end) const;

 private:
  struct Candidate {
    std::optional<std::uint64_t> content;
    std::uint32_t seen = 0;
    std::uint32_t needed = kSeenAtFirst;
    std::int32_t credit = kFirstCredit;
  };
  static constexpr std::uint32_t kSeenAtFirst = 4;
  /// Cost of one write, in samples of code that need not compare its bytes.
  static constexpr std::int32_t kWriteCost = 80;
  static constexpr std::int32_t kFirstCredit = 8 * kWriteCost;
  static constexpr std::int32_t kMostCredit = 32 * kWriteCost;
  static std::uint64_t page_of(TraceeAddr at) { return at.value() / kPageBytes; }

  struct Opening {
    int times = 0;
    mutable bool asked = false;
  };

  std::set<std::uint64_t> protected_;  ///< Numbers of the write-protected pages.
  std::unordered_map<std::uint64_t, Opening> open_;
  std::unordered_map<std::uint64_t, Candidate> candidates_;
  std::vector<std::uint64_t> seen_now_;
};

/// Joins adjacent pages into ranges.
[[nodiscard]] std::vector<ProtectedPages::Range> join_pages(const std::vector<TraceeAddr>& pages);

}  // namespace backtrail::tracee::cache
