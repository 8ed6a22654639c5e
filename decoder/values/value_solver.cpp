// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_solver.hpp"

#include <algorithm>

#include "arch/cpu/program_abi.hpp"

namespace backtrail::decoder::values {

using cpu::AccessKind;

ValueSolver::ValueSolver(ValueGraph& graph, EndState& end, std::vector<MappingChange> changes,
                         std::vector<StackLink> links)
    : graph_{graph},
      end_{end},
      changes_{std::move(changes)},
      barriers_{graph.accesses.size()},
      hard_{graph.accesses.size()},
      address_(graph.accesses.size()),
      place_(graph.accesses.size(), Place::kOpen),
      effects_(graph.calls.size()),
      links_{std::move(links)} {
  first_access_item_ = static_cast<std::uint32_t>(graph.nodes.size());
  first_call_item_ = first_access_item_ + static_cast<std::uint32_t>(graph.accesses.size());
  first_frame_item_ = first_call_item_ + static_cast<std::uint32_t>(graph.calls.size());
  first_link_item_ = first_frame_item_ + static_cast<std::uint32_t>(graph.frames.size());
  queued_.resize(first_link_item_ + links_.size());
  for (std::uint32_t i = 0; i < graph.accesses.size(); ++i) {
    if (graph.accesses[i].kind != AccessKind::kLoad) barriers_.add(i);
  }
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    for (const std::uint32_t suspect : links_[i].suspects) {
      if (graph.accesses[suspect].kind != AccessKind::kStore) links_across_.emplace(suspect, i);
    }
  }
  index_uses();
}

void ValueSolver::index_uses() {
  const auto each_use = [this](auto&& use) {
    std::uint32_t item = 0;
    for (const Node& node : graph_.nodes) {
      for (unsigned i = 0; i < node.count; ++i) use(node.vars[i], item);
      ++item;
    }
    for (const Access& access : graph_.accesses) {
      use(access.base, item);
      use(access.value, item++);
    }
    for (const SystemCall& call : graph_.calls) {
      for (const Var var : call.in) use(var, item);
      use(call.result, item++);
    }
    for (const SignalFrame& frame : graph_.frames) {
      use(frame.rsp_before, item);
      use(frame.rsp_after, item++);
    }
    for (const StackLink& link : links_) {
      use(graph_.accesses[link.earlier].value, item);
      for (const std::uint32_t suspect : link.suspects) use(graph_.accesses[suspect].value, item);
      use(graph_.accesses[link.later].value, item++);
    }
  };
  // A fully known variable never changes, and constants have very many uses.
  const auto counts = [this](Var var) { return !graph_.known[var].all(); };
  first_use_.assign(graph_.known.size() + 1, 0);
  each_use([&](Var var, std::uint32_t) {
    if (counts(var)) ++first_use_[var + 1];
  });
  for (std::size_t i = 1; i < first_use_.size(); ++i) first_use_[i] += first_use_[i - 1];
  uses_.resize(first_use_.back());
  std::vector<std::uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  each_use([&](Var var, std::uint32_t item) {
    if (counts(var)) uses_[next[var]++] = item;
  });
}

void ValueSolver::enqueue(std::uint32_t item) {
  if (queued_[item]) return;
  queued_[item] = true;
  queue_.push_back(item);
}

void ValueSolver::learn(Var var, std::uint64_t value, std::uint64_t mask) {
  Known& known = graph_.known[var];
  const std::uint64_t before = known.mask;
  if (!known.learn(value, mask)) graph_.consistent = false;
  if (known.mask == before) return;
  for (std::uint32_t i = first_use_[var]; i < first_use_[var + 1]; ++i) enqueue(uses_[i]);
}

void ValueSolver::relate(const Node& node) {
  std::array<Known, cpu::kMaxRefs> values;
  for (unsigned i = 0; i < node.count; ++i) values[i] = graph_.known[node.vars[i]];
  if (!cpu::deduce(node.relation, std::span{values}.first(node.count))) graph_.consistent = false;
  for (unsigned i = 0; i < node.count; ++i) learn(node.vars[i], values[i].value, values[i].mask);
}

void ValueSolver::solve() {
  for (std::uint32_t item = static_cast<std::uint32_t>(queued_.size()); item > 0; --item) {
    enqueue(item - 1);
  }
  while (!queue_.empty()) {
    const std::uint32_t item = queue_.front();
    queue_.pop_front();
    queued_[item] = false;
    if (item < first_access_item_) {
      relate(graph_.nodes[item]);
    } else if (item < first_call_item_) {
      handle_access(item - first_access_item_);
    } else if (item < first_frame_item_) {
      handle_call(item - first_call_item_);
    } else if (item < first_link_item_) {
      handle_frame(graph_.frames[item - first_frame_item_]);
    } else {
      handle_link(links_[item - first_link_item_]);
    }
  }
}

void ValueSolver::handle_access(std::uint32_t access) {
  const Access& a = graph_.accesses[access];
  if (a.kind == AccessKind::kUnknownStore) return;
  if (a.kind == AccessKind::kRangeStore) {
    handle_range(access);
    return;
  }
  if (place_[access] == Place::kListed) {
    spread(access);
    return;
  }
  if (place_[access] != Place::kOpen) return;
  if (const Known& base = graph_.known[a.base]; base.all()) {
    place(access, base.value + static_cast<std::uint64_t>(a.offset));
  } else if (a.kind == AccessKind::kStore) {
    narrow(access);
    if (graph_.known[a.value].all(8U * a.size) && hard_.contains(access)) make_refutable(access);
  }
}

ValueSolver::Place ValueSolver::judge(std::int64_t step, std::uint64_t address, unsigned size) {
  const std::uint64_t last = address + size - 1;
  if (last < address) return Place::kUnstable;
  for (const MappingChange& change : changes_) {
    if (step < change.step && address < change.end && last >= change.begin) {
      return Place::kUnstable;
    }
  }
  const PageKind kind = end_.page(TraceeAddr{address});
  if (kind == PageKind::kUnknown || end_.page(TraceeAddr{last}) != kind) return Place::kUnstable;
  if (kind == PageKind::kConstant) return Place::kConstant;
  return end_.stable(TraceeAddr{address & ~std::uint64_t{7}}) &&
                 end_.stable(TraceeAddr{last & ~std::uint64_t{7}})
             ? Place::kListed
             : Place::kUnstable;
}

std::array<ValueSolver::Part, 2> ValueSolver::parts(std::uint32_t access) const {
  const std::uint64_t address = address_[access];
  const unsigned size = graph_.accesses[access].size;
  const std::uint64_t first = address & ~std::uint64_t{7};
  return {Part{first, covered_bits(first, address, size)},
          Part{first + 8, covered_bits(first + 8, address, size)}};
}

void ValueSolver::place(std::uint32_t access, std::uint64_t address) {
  const Access& a = graph_.accesses[access];
  address_[access] = address;
  place_[access] = judge(a.step, address, a.size);
  if (place_[access] == Place::kConstant && a.kind == AccessKind::kLoad) {
    for (const Part& part : parts(access)) {
      if (part.bits != 0) take(access, part.granule, final_content(part.granule), part.bits);
    }
  }
  if (place_[access] == Place::kListed) {
    for (const Part& part : parts(access)) {
      if (part.bits != 0) lists_.add(part.granule, access);
    }
  }
  if (a.kind == AccessKind::kStore) {
    barriers_.remove(access);
    hard_.erase(access);
    wake_around(access);
  }
  if (place_[access] == Place::kListed) spread(access);
}

/// Bounds the addresses of a store by the known bits of its base.
void ValueSolver::narrow(std::uint32_t access) {
  const Access& a = graph_.accesses[access];
  const Known& base = graph_.known[a.base];
  constexpr std::uint64_t kTopBits = ~std::uint64_t{0} << 40;
  if ((base.mask & kTopBits) != kTopBits) return;
  const auto offset = static_cast<std::uint64_t>(a.offset);
  const std::uint64_t low = base.value + offset;
  const std::uint64_t high = (base.value | ~base.mask) + offset + a.size - 1;
  if (low > high || barriers_.within(access, low, high)) return;
  barriers_.bound(access, low, high);
  hard_.erase(access);
  wake_around(access);
}

void ValueSolver::handle_range(std::uint32_t access) {
  const Access& a = graph_.accesses[access];
  const Known& base = graph_.known[a.base];
  const Known& length = graph_.known[a.value];
  if (place_[access] != Place::kOpen || !base.all() || !length.all()) return;
  settle_range(access, base.value + static_cast<std::uint64_t>(a.offset), length.value);
}

/// Turns an unknown store into one to [begin, begin + bytes).
void ValueSolver::settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes) {
  if (place_[access] != Place::kOpen) return;
  if (bytes != 0 && begin + bytes - 1 < begin) return;
  place_[access] = Place::kUnstable;
  address_[access] = begin;
  hard_.erase(access);
  if (bytes == 0) {
    barriers_.remove(access);
  } else {
    barriers_.bound(access, begin, begin + bytes - 1);
  }
  wake_around(access);
  const auto [first, last] = links_across_.equal_range(access);
  for (auto link = first; link != last; ++link) enqueue(first_link_item_ + link->second);
}

void ValueSolver::handle_frame(const SignalFrame& frame) {
  const Known& before = graph_.known[frame.rsp_before];
  const Known& after = graph_.known[frame.rsp_after];
  if (!before.all() || !after.all()) return;
  constexpr std::uint64_t kMostBytes = 65536;
  const std::uint64_t below = before.value - arch::cpu::kRedZoneBytes - after.value;
  settle_range(frame.access, after.value, std::min(below, kMostBytes));
}

void ValueSolver::handle_call(std::size_t index) {
  if (effects_[index] && effects_[index]->writes) return;
  const SystemCall& call = graph_.calls[index];
  std::array<Known, 7> in;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = graph_.known[call.in[i]];
  effects_[index] = call_effects(in, graph_.known[call.result]);
  if (!effects_[index] || !effects_[index]->writes) return;
  const auto& writes = *effects_[index]->writes;
  for (unsigned i = 0; i < kCallAccesses; ++i) {
    const MemoryRange range = i < writes.size() ? writes[i] : MemoryRange{};
    settle_range(call.first_access + i, range.begin, range.bytes);
  }
}

/// Call when the value of a store to an unknown address becomes known: it cannot have written bytes
/// that hold something else afterwards.
void ValueSolver::make_refutable(std::uint32_t access) {
  hard_.erase(access);
  wake_around(access);
}

/// Call when a barrier is gone or blocks less: accesses on its two sides may now affect each other.
void ValueSolver::wake_around(std::uint32_t access) {
  // Beyond this many accesses little is found for the effort.
  constexpr std::uint32_t kReach = 4000;
  const std::uint32_t previous = hard_.previous(access);
  const std::uint32_t next = hard_.next(access + 1);
  std::uint32_t from = previous == Barriers::kNone ? 0 : previous;
  std::uint32_t to = access;
  if (next != Barriers::kNone && next - access < access - from) {
    from = access + 1;
    to = next + 1;
  }
  if (to - from > kReach) {
    if (from > access) {
      to = from + kReach;
    } else {
      from = to - kReach;
    }
  }
  for (std::uint32_t i = from; i < to; ++i) {
    if (place_[i] == Place::kListed) enqueue(first_access_item_ + i);
  }
}

std::optional<ValueSolver::Flaw> ValueSolver::flaw(const Window& window) {
  constexpr std::uint64_t kSigreturn = 15;
  for (std::size_t i = graph_.calls.size(); i > 0; --i) {
    const SystemCall& call = graph_.calls[i - 1];
    const std::optional<CallEffects>& effects = effects_[i - 1];
    if (!effects) return Flaw{call.step, std::nullopt};
    const bool restores = (graph_.known[call.in[0]].value & 0xffffffff) == kSigreturn;
    if (restores == call.returns_behind) return Flaw{call.step, std::nullopt};
    if (auto found = mapping_flaw(window, call, *effects)) return found;
    const bool linked = std::ranges::any_of(links_, [&](const StackLink& link) {
      return graph_.accesses[link.earlier].step < call.step;
    });
    if (effects->removes && linked) return Flaw{call.step, std::nullopt, true};
  }
  return std::nullopt;
}

std::optional<ValueSolver::Flaw> ValueSolver::mapping_flaw(const Window& window,
                                                           const SystemCall& call,
                                                           const CallEffects& effects) {
  if (!effects.mapping && !effects.heap) return std::nullopt;
  MappingChange change{call.step, 0, 0};
  if (effects.mapping) {
    change.begin = effects.mapping->begin;
    change.end = change.begin + effects.mapping->bytes;
  } else {
    const auto bounds = end_.heap();
    if (!bounds) return Flaw{call.step, std::nullopt};
    change.begin = bounds->first.value();
    change.end = bounds->second.value();
  }
  for (std::size_t i = graph_.begin(); i < call.step; ++i) {
    const std::uint64_t pc = window.steps[i].pc.value();
    constexpr std::uint64_t kLongest = 15;
    if (pc < change.end && pc + kLongest > change.begin) return Flaw{call.step, std::nullopt};
  }
  const auto same = [&](const MappingChange& known) {
    return known.step == change.step && known.begin == change.begin && known.end == change.end;
  };
  if (std::any_of(changes_.begin(), changes_.end(), same)) return std::nullopt;
  for (std::uint32_t i = 0; i < graph_.accesses.size(); ++i) {
    const Access& access = graph_.accesses[i];
    if (access.step >= call.step) break;
    if (place_[i] != Place::kListed && place_[i] != Place::kConstant) continue;
    if (address_[i] < change.end && address_[i] + access.size > change.begin) {
      return Flaw{call.step, change};
    }
  }
  changes_.push_back(change);
  return std::nullopt;
}

bool ValueSolver::removes_mappings() const {
  return std::ranges::any_of(effects_,
                             [](const auto& effects) { return !effects || effects->removes; });
}

std::optional<std::uint64_t> ValueSolver::address(std::uint32_t access) const {
  if (place_[access] == Place::kOpen) return std::nullopt;
  return address_[access];
}

}  // namespace backtrail::decoder::values
