// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/stack_links.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace backtrail::decoder::values {
namespace {

using cpu::AccessKind;

/// A variable as another one plus a constant, modulo 2^64.
struct Distance {
  Var root = 0;
  std::uint64_t plus = 0;
};

/// Groups variables that differ by constants.
class Distances {
 public:
  explicit Distances(std::size_t count) : from_(count), on_stack_(count) {
    for (std::size_t i = 0; i < count; ++i) from_[i].root = static_cast<Var>(i);
  }
  Distance of(Var var) {
    Distance found{var, 0};
    while (from_[found.root].root != found.root) {
      found.plus += from_[found.root].plus;
      found.root = from_[found.root].root;
    }
    from_[var] = found;
    return found;
  }
  /// Notes that `one` is `other` plus `plus`. Returns true if that is news.
  bool unite(Var one, Var other, std::uint64_t plus) {
    const Distance a = of(one);
    const Distance b = of(other);
    if (a.root == b.root) return false;
    // one = a.root + a.plus = b.root + b.plus + plus
    from_[a.root] = {b.root, b.plus + plus - a.plus};
    if (on_stack_[a.root]) on_stack_[b.root] = true;
    return true;
  }
  void note_stack(Var var) { on_stack_[of(var).root] = true; }
  [[nodiscard]] bool is_on_stack(Var root) const { return on_stack_[root]; }

 private:
  std::vector<Distance> from_;
  std::vector<bool> on_stack_;
};

bool is_store(const Access& access) {
  return access.kind != AccessKind::kLoad;
}

class Finder {
 public:
  Finder(const ValueGraph& graph, std::size_t from)
      : graph_{graph}, from_{from}, distances_{graph.known.size()} {
    for (const Node& node : graph.nodes) take(node);
    for (const Var var : graph.stack_pointers) distances_.note_stack(var);
    for (std::uint32_t i = 0; i < graph.accesses.size(); ++i) {
      if (is_store(graph.accesses[i])) stores_.push_back(i);
    }
  }

  std::vector<StackLink> find() {
    // A register that was restored leads to further places. Distances change between scans only:
    // each scan needs to know which stores are at the same place.
    constexpr unsigned kMostRounds = 4;
    for (unsigned round = 0; round < kMostRounds; ++round) {
      links_.clear();
      last_.clear();
      scan();
      bool news = false;
      for (const auto& [one, other] : std::exchange(equal_, {})) {
        news |= distances_.unite(one, other, 0);
      }
      if (!news) break;
    }
    return std::move(links_);
  }

 private:
  struct Place {
    std::uint32_t access;
    unsigned size;
  };
  using Places = std::unordered_map<std::uint64_t, Place>;

  void take(const Node& node) {
    const cpu::Relation& relation = node.relation;
    if (relation.width != 64) return;
    const auto constant = [this](Var var) -> std::optional<std::uint64_t> {
      const Known& known = graph_.known[var];
      return known.all() ? std::optional{known.value} : std::nullopt;
    };
    if (relation.op == cpu::Op::kEqual && node.count == 2 && relation.p == 0 && relation.q == 0) {
      distances_.unite(node.vars[0], node.vars[1], 0);
    }
    if (relation.op != cpu::Op::kAdd || node.count != 3) return;
    const auto [sum, one, other] = std::tuple{node.vars[0], node.vars[1], node.vars[2]};
    if (const auto plus = constant(other)) {
      distances_.unite(sum, one, *plus);
    } else if (const auto plus_one = constant(one)) {
      distances_.unite(sum, other, *plus_one);
    }
  }

  void scan() {
    for (std::uint32_t i = graph_.first_access(std::max(from_, graph_.begin()));
         i < graph_.accesses.size(); ++i) {
      const Access& access = graph_.accesses[i];
      if (access.kind != AccessKind::kLoad && access.kind != AccessKind::kStore) continue;
      const Distance base = distances_.of(access.base);
      if (!distances_.is_on_stack(base.root)) continue;
      const std::uint64_t at = base.plus + static_cast<std::uint64_t>(access.offset);
      Places& places = last_[base.root];
      if (access.kind == AccessKind::kStore) {
        overwrite(places, at, access.size);
        places[at] = {i, access.size};
        continue;
      }
      const auto found = places.find(at);
      if (found == places.end() || found->second.size != access.size) continue;
      add(found->second.access, i, base.root);
      found->second.access = i;
    }
  }

  static void overwrite(Places& places, std::uint64_t at, unsigned size) {
    constexpr std::uint64_t kLongest = 8;
    for (std::uint64_t other = at - (kLongest - 1); other != at + size; ++other) {
      const auto found = places.find(other);
      if (found != places.end() && (other - at < size || at - other < found->second.size)) {
        places.erase(found);
      }
    }
  }

  void add(std::uint32_t earlier, std::uint32_t later, Var root) {
    constexpr std::size_t kMostSuspects = 64;
    constexpr unsigned kPatience = 512;
    StackLink link{earlier, later, {}};
    unsigned seen = 0;
    for (auto at = std::upper_bound(stores_.begin(), stores_.end(), earlier);
         at != stores_.end() && *at < later; ++at) {
      const Access& store = graph_.accesses[*at];
      if (++seen > kPatience) return;
      // Stores at other distances from the same stack pointer are elsewhere.
      if (store.kind == AccessKind::kStore && distances_.of(store.base).root == root) continue;
      if (link.suspects.size() == kMostSuspects) return;
      link.suspects.push_back(*at);
    }
    const Access& load = graph_.accesses[later];
    if (link.suspects.empty() && load.size == 8) {
      equal_.emplace_back(load.value, graph_.accesses[earlier].value);
    }
    links_.push_back(std::move(link));
  }

  const ValueGraph& graph_;
  std::size_t from_;
  Distances distances_;
  std::vector<std::uint32_t> stores_;
  std::unordered_map<Var, Places> last_;  ///< The newest access by root and distance.
  std::vector<StackLink> links_;
  std::vector<std::pair<Var, Var>> equal_;  ///< Values of links without suspects.
};

}  // namespace

std::vector<StackLink> stack_links(const ValueGraph& graph, std::size_t from) {
  return Finder{graph, from}.find();
}

}  // namespace backtrail::decoder::values
