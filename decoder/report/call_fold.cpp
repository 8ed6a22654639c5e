// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/call_fold.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace backtrail::decoder {
namespace {

/// Longest repeating sequence of sibling calls that is folded, in rows.
constexpr std::size_t kMostPeriod = 8;

/// An entry in a folded list of children. `span` is nonzero at the first entry of a repeating
/// sequence.
struct Item {
  std::size_t node = 0;
  std::uint64_t hash = 0;
  std::uint64_t repeat = 1;    ///< Repetitions of this child alone.
  std::uint64_t sequence = 1;  ///< Repetitions of the sequence that begins here.
  std::uint32_t span = 0;      ///< Entries in the sequence that begins here; 0 if none begins here.
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
  hash *= 0xff51afd7ed558ccdU;
  return hash ^ (hash >> 32U);
}

std::uint64_t hash_of(const Item& item) {
  return mix(mix(mix(item.hash, item.repeat), item.sequence), item.span);
}

/// Folds runs of equal items: a a a -> a x 3.
std::vector<Item> fold_runs(std::span<const Item> items) {
  std::vector<Item> out;
  for (const Item& item : items) {
    if (!out.empty() && out.back().hash == item.hash) {
      ++out.back().repeat;
    } else {
      out.push_back(item);
    }
  }
  return out;
}

bool equal_at(std::span<const Item> items, std::size_t a, std::size_t b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (hash_of(items[a + i]) != hash_of(items[b + i])) return false;
  }
  return true;
}

/// Folds repeating sequences: a b a b -> (a b) x 2.
std::vector<Item> fold_sequences(std::span<const Item> items) {
  std::vector<Item> out;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t best = 0;
    std::size_t best_times = 1;
    for (std::size_t period = 2; period <= kMostPeriod && i + 2 * period <= items.size();
         ++period) {
      std::size_t times = 1;
      while (i + (times + 1) * period <= items.size() &&
             equal_at(items, i, i + times * period, period)) {
        ++times;
      }
      if (times > 1 && times * period > best * best_times) {
        best = period;
        best_times = times;
      }
    }
    if (best == 0) {
      out.push_back(items[i++]);
      continue;
    }
    const std::size_t at = out.size();
    for (std::size_t k = 0; k < best; ++k) out.push_back(items[i + k]);
    out[at].span = static_cast<std::uint32_t>(best);
    out[at].sequence = best_times;
    i += best * best_times;
  }
  return out;
}

/// Node numbers: calls first, then gaps, then off-CPU times, and last the root.
class Folder {
 public:
  Folder(std::span<const Call> calls, std::span<const GapMark> gaps, std::span<const OffMark> offs)
      : calls_{calls},
        gaps_{gaps},
        offs_{offs},
        first_off_{calls.size() + gaps.size()},
        root_{first_off_ + offs.size()} {}

  std::vector<FoldedRow> fold() {
    link();
    hashes_.resize(root_ + 1);
    nested_.assign(root_ + 1, 1);
    within_.resize(root_ + 1);
    lists_.resize(root_ + 1);
    for (std::size_t i = 0; i < gaps_.size(); ++i) hashes_[calls_.size() + i] = mix(i, 0x6a70U);
    for (std::size_t i = 0; i < offs_.size(); ++i) {
      const auto length = static_cast<std::uint64_t>(std::bit_width(offs_[i].ns));
      hashes_[first_off_ + i] = mix(length, offs_[i].preempted ? 0x6f66U : 0x6f67U);
    }
    for (std::size_t i = calls_.size(); i-- > 0;) fold_node(i);
    fold_node(root_);
    return rows();
  }

 private:
  /// Links each node to its first child and next sibling, in order.
  void link() {
    first_.assign(root_ + 1, kNoCall);
    next_.assign(root_ + 1, kNoCall);
    for (std::size_t i = calls_.size(); i-- > 0;) {
      const std::size_t parent = calls_[i].parent == kNoCall ? root_ : calls_[i].parent;
      next_[i] = first_[parent];
      first_[parent] = i;
    }
    // Every gap closes all calls, so a gap is a root: it precedes the roots that begin at its
    // position.
    std::size_t before = kNoCall;
    std::size_t at = first_[root_];
    for (std::size_t g = 0; g < gaps_.size(); ++g) {
      while (at != kNoCall && calls_[at].begin_position < gaps_[g].position) {
        before = at;
        at = next_[at];
      }
      const std::size_t node = calls_.size() + g;
      next_[node] = at;
      (before == kNoCall ? first_[root_] : next_[before]) = node;
      before = node;
    }
    link_offs();
  }

  /// Links each off-CPU time below the innermost call that contains it.
  void link_offs() {
    std::vector<std::size_t> open;  ///< Calls that contain the position, outermost first.
    std::size_t next = 0;
    for (std::size_t i = 0; i < offs_.size(); ++i) {
      const std::uint64_t position = offs_[i].position;
      for (; next < calls_.size() && calls_[next].begin_position <= position; ++next) {
        while (!open.empty() && open.back() != calls_[next].parent) open.pop_back();
        open.push_back(next);
      }
      while (!open.empty() && calls_[open.back()].end_position <= position) open.pop_back();
      insert(first_off_ + i, open.empty() ? root_ : open.back(), position);
    }
  }
  void insert(std::size_t node, std::size_t parent, std::uint64_t position) {
    std::size_t before = kNoCall;
    std::size_t at = first_[parent];
    // Marks arrive in order, so the search continues from this parent's last mark.
    if (const auto last = last_off_.find(parent); last != last_off_.end()) {
      before = last->second;
      at = next_[before];
    }
    for (; at != kNoCall && begin_of(at) <= position; at = next_[at]) before = at;
    next_[node] = at;
    (before == kNoCall ? first_[parent] : next_[before]) = node;
    last_off_[parent] = node;
  }
  [[nodiscard]] std::uint64_t begin_of(std::size_t node) const {
    return node < calls_.size() ? calls_[node].begin_position
           : node < first_off_  ? gaps_[node - calls_.size()].position
                                : offs_[node - first_off_].position;
  }

  void fold_node(std::size_t node) {
    items_.clear();
    for (std::size_t child = first_[node]; child != kNoCall; child = next_[child]) {
      items_.push_back({child, hashes_[child], 1, 1, 0});
    }
    std::vector<Item>& list = lists_[node];
    if (!items_.empty()) list = fold_sequences(fold_runs(items_));
    if (node == root_) return;
    const Call& call = calls_[node];
    sum_up(node);
    fold_recursion(node, call, list);
    find_next(node, list);
    std::uint64_t hash = mix(call.function.id, call.function.known() ? 0 : call.first.value());
    hash = mix(hash, call.site.value());
    hash = mix(hash,
               static_cast<std::uint64_t>(call.begin) << 8U | static_cast<std::uint64_t>(call.end));
    hash = mix(hash, nested_[node]);
    for (const Item& item : list) hash = mix(hash, hash_of(item));
    hashes_[node] = hash;
  }

  /// Folds a call whose only child calls the same function into one call with a nesting count.
  void fold_recursion(std::size_t node, const Call& call, std::vector<Item>& list) {
    if (list.size() != 1 || list.front().repeat != 1 || list.front().node >= calls_.size()) return;
    const std::size_t child = list.front().node;
    const Call& inner = calls_[child];
    if (!call.function.known() || inner.function.id != call.function.id) return;
    const bool on_stack = call.from_stack && inner.from_stack && inner.begin == CallBegin::kUnseen;
    if ((inner.begin != CallBegin::kCalled && !on_stack) || inner.end != call.end) return;
    nested_[node] = nested_[child] + 1;
    std::vector<Item> within = std::move(lists_[child]);
    list = std::move(within);
    within_[node].shape = within_[child].shape;
  }

  /// Summary of a call, including everything that it called.
  struct Within {
    std::uint64_t shape = 0;     ///< Hash of the functions that it called directly, in order.
    std::size_t next = kNoCall;  ///< The child through which recursion continues, if that child
                                 ///< appears once; else kNoCall.
    std::uint32_t calls = 1;
    std::uint32_t height = 1;
    std::uint32_t waits = 0;
  };
  void sum_up(std::size_t node) {
    Within& sum = within_[node];
    std::uint64_t last = 0;
    for (const Item& item : items_) {
      if (item.node >= calls_.size()) {
        ++sum.waits;
        continue;
      }
      const Within& child = within_[item.node];
      sum.calls += child.calls;
      sum.waits += child.waits;
      sum.height = std::max(sum.height, child.height + 1);
      const FunctionRef& function = calls_[item.node].function;
      const std::uint64_t id = mix(1, function.known() ? function.id : ~item.node);
      if (id != last) sum.shape = mix(sum.shape, id);
      last = id;
    }
  }
  /// Returns true if `child` or one of the calls below it, at most kMostPeriod deep, is `node`'s
  /// function.
  [[nodiscard]] bool recurs(std::size_t child, std::size_t node) const {
    const FunctionRef& function = calls_[node].function;
    for (std::size_t steps = kMostPeriod; steps != 0 && child != kNoCall; --steps) {
      if (function.known() && calls_[child].function.id == function.id) return true;
      child = next_of(child);
    }
    return false;
  }
  /// Picks the child through which recursion continues: one that has not returned, else one that
  /// recurs, else the one with the deepest calls.
  void find_next(std::size_t node, const std::vector<Item>& list) {
    using Rank = std::tuple<bool, bool, std::uint32_t>;
    Rank best{};
    std::uint32_t in_sequence = 0;  ///< Entries left in the current sequence.
    for (const Item& item : list) {
      in_sequence = std::max(item.span, in_sequence - std::min(in_sequence, 1U));
      if (item.node >= calls_.size()) continue;
      const Rank rank{calls_[item.node].end == CallEnd::kOpen, recurs(item.node, node),
                      within_[item.node].height};
      if (rank <= best) continue;
      best = rank;
      within_[node].next = item.repeat == 1 && in_sequence == 0 ? item.node : kNoCall;
    }
  }
  [[nodiscard]] std::size_t next_of(std::size_t node) const { return within_[node].next; }
  [[nodiscard]] std::size_t follow(std::size_t node, std::size_t steps) const {
    for (; steps != 0 && node != kNoCall; --steps) node = next_of(node);
    return node;
  }
  /// Returns true if both calls are of the same function, made in the same way. The call site may
  /// differ for the outermost call of a circle, and for a call that has returned and has siblings.
  [[nodiscard]] bool alike(std::size_t a, std::size_t b, bool outermost) const {
    const Call& x = calls_[a];
    const Call& y = calls_[b];
    const bool anywhere = outermost || (y.end != CallEnd::kOpen && lists_[y.parent].size() > 1);
    return x.function.known() && x.function.id == y.function.id && x.begin == y.begin &&
           x.end == y.end && x.from_stack == y.from_stack && nested_[a] == nested_[b] &&
           (anywhere || x.site == y.site);
  }
  /// Returns true if both calls called the same functions, and the second waited only inside its
  /// next call, so that no wait is lost by folding it.
  [[nodiscard]] bool did_alike(std::size_t a, std::size_t b) const {
    const std::size_t next = next_of(b);
    return within_[a].shape == within_[b].shape && next != kNoCall &&
           within_[b].waits == within_[next].waits;
  }
  /// A chain of nested calls that repeats: each round calls the same functions and then the next
  /// round.
  struct Circle {
    std::uint32_t round = 0;   ///< Nested calls in one round.
    std::uint64_t rounds = 1;  ///< 1 if there is no circle.
    std::size_t inner = 0;     ///< The last call of the first round.
    std::size_t last = 0;      ///< The innermost call of the last round.
    std::uint64_t calls = 0;   ///< Calls in all rounds after the first, side calls included.
  };
  [[nodiscard]] Circle circle_at(std::size_t node) const {
    constexpr std::uint64_t kFewestRounds = 3;
    for (std::uint32_t round = 1; round <= kMostPeriod; ++round) {
      const std::size_t second = follow(node, round);
      std::size_t behind = second;
      std::uint64_t same = 0;
      for (std::size_t at = node; behind != kNoCall && alike(at, behind, at == node);) {
        ++same;
        if (!did_alike(at, behind)) break;
        at = next_of(at);
        behind = next_of(behind);
      }
      const std::uint64_t rounds = (same + round) / round;
      if (rounds < kFewestRounds) continue;
      const std::size_t last = follow(node, rounds * round - 1);
      return {round, rounds, follow(node, round - 1), last,
              within_[second].calls - within_[last].calls + nested_[last]};
    }
    return {};
  }

  /// A position in a list whose rows are being written.
  struct Cursor {
    const std::vector<Item>* list;
    std::size_t at;
    std::size_t end;  ///< End of the sequence or of the list.
    std::uint32_t level;
    bool in_sequence;
  };
  [[nodiscard]] FoldedRow row_of(const Item& item, std::uint32_t level) const {
    FoldedRow row{FoldedRow::Kind::kCall, level, item.node, item.repeat, nested_[item.node]};
    if (item.node >= first_off_) {
      row.kind = FoldedRow::Kind::kOff;
      row.index -= first_off_;
    } else if (item.node >= calls_.size()) {
      row.kind = FoldedRow::Kind::kGap;
      row.index -= calls_.size();
    }
    return row;
  }
  /// Shows the calls of the first round as ordinary rows. One row with the number of further rounds
  /// replaces the second round.
  void note_circle(std::size_t node) {
    if (first_round_.erase(node) != 0) return;
    const Circle circle = circle_at(node);
    if (circle.rounds == 1) return;
    for (std::uint32_t i = 1; i < circle.round; ++i) {
      node = next_of(node);
      first_round_.insert(node);
    }
    second_rounds_[next_of(node)] = circle;
  }
  std::vector<FoldedRow> rows() {
    std::vector<FoldedRow> out;
    std::vector<Cursor> stack{{&lists_[root_], 0, lists_[root_].size(), 0, false}};
    while (!stack.empty()) {
      Cursor& top = stack.back();
      if (top.at == top.end) {
        stack.pop_back();
        continue;
      }
      const Item& item = (*top.list)[top.at];
      if (item.span != 0 && !top.in_sequence) {
        out.push_back({FoldedRow::Kind::kRepeat, top.level, 0, item.sequence, 1});
        const Cursor body{top.list, top.at, top.at + item.span, top.level + 1, true};
        top.at += item.span;
        stack.push_back(body);
        continue;
      }
      ++top.at;
      FoldedRow row = row_of(item, top.level);
      std::size_t inner = item.node;
      if (const auto found = second_rounds_.find(inner); found != second_rounds_.end()) {
        const Circle& circle = found->second;
        row = {FoldedRow::Kind::kRounds,
               top.level,
               circle.inner,
               circle.rounds - 1,
               1,
               circle.round,
               circle.calls};
        inner = circle.last;
      } else if (row.kind == FoldedRow::Kind::kCall) {
        note_circle(inner);
      }
      out.push_back(row);
      if (const auto& list = lists_[inner]; !list.empty()) {
        stack.push_back({&list, 0, list.size(), row.level + 1, false});
      }
    }
    return out;
  }

  std::span<const Call> calls_;
  std::span<const GapMark> gaps_;
  std::span<const OffMark> offs_;
  std::size_t first_off_;
  std::size_t root_;
  /// Last off-CPU node inserted, by parent.
  std::unordered_map<std::size_t, std::size_t> last_off_;
  std::vector<std::size_t> first_;
  std::vector<std::size_t> next_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint64_t> nested_;
  std::vector<Within> within_;
  /// Later calls of first rounds whose rows are still to come.
  std::unordered_set<std::size_t> first_round_;
  /// Circles by the first call of their second round.
  std::unordered_map<std::size_t, Circle> second_rounds_;
  std::vector<std::vector<Item>> lists_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<FoldedRow> fold_calls(std::span<const Call> calls, std::span<const GapMark> gaps,
                                  std::span<const OffMark> offs) {
  return Folder{calls, gaps, offs}.fold();
}

}  // namespace backtrail::decoder
