#pragma once
/// @file
/// Code that a program may write at any time, and does not: which pages are worth taking the
/// permission away, so that superblocks of them need not compare what they were made of.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

class QuietPages {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;
  /// [begin, end), whole pages.
  using Range = std::pair<TraceeAddr, TraceeAddr>;

  /// Code at that address runs often: seen in a sample of what a thread ran.
  void ran(TraceeAddr at);
  /// Pages that have run often enough and have stayed the same meanwhile; `content` tells a page's
  /// content apart from another one. The caller takes the permission away, or not.
  std::vector<TraceeAddr> take_due(const std::function<std::uint64_t(TraceeAddr)>& content);

  /// The permission was taken away.
  void add(const Range& pages);
  /// The program writes there. True when it does so too often for how often the page runs, and
  /// should be let: the next time, the page will take longer.
  bool written(TraceeAddr at);
  /// The page was due, and cannot be taken now: the next time, it will take longer.
  void put_off(TraceeAddr at);
  /// The permission was given back for a moment; what is made of the page meanwhile is not to last.
  void open(TraceeAddr page) { ++open_[page_of(page)].times; }
  /// True when something was asked of it meanwhile.
  bool close(TraceeAddr page);
  /// Nobody writes it unseen.
  [[nodiscard]] bool is_kept(TraceeAddr at) const;
  /// The permission was given back.
  void remove(const Range& pages);

  [[nodiscard]] bool contains(TraceeAddr at) const { return quiet_.contains(page_of(at)); }
  [[nodiscard]] bool empty() const { return quiet_.empty(); }
  [[nodiscard]] std::size_t size() const { return quiet_.size(); }
  /// Those in [begin, end), neighbours as one.
  [[nodiscard]] std::vector<Range> within(TraceeAddr begin, TraceeAddr end) const;

 private:
  struct Candidate {
    std::optional<std::uint64_t> content;
    std::uint32_t seen = 0;
    std::uint32_t needed = kSeenAtFirst;
    std::int32_t credit = kFirstCredit;
  };
  static constexpr std::uint32_t kSeenAtFirst = 4;
  /// What one write costs, in samples of code that need not look at itself.
  static constexpr std::int32_t kWriteCost = 80;
  static constexpr std::int32_t kFirstCredit = 8 * kWriteCost;
  static constexpr std::int32_t kMostCredit = 32 * kWriteCost;
  static std::uint64_t page_of(TraceeAddr at) { return at.value() / kPageBytes; }

  struct Opening {
    int times = 0;
    mutable bool asked = false;
  };

  std::set<std::uint64_t> quiet_;  ///< Page numbers.
  std::unordered_map<std::uint64_t, Opening> open_;
  std::unordered_map<std::uint64_t, Candidate> candidates_;
  std::vector<std::uint64_t> seen_now_;
};

/// Neighbours as one.
[[nodiscard]] std::vector<QuietPages::Range> join_pages(const std::vector<TraceeAddr>& pages);

}  // namespace backtrail::tracee::cache
