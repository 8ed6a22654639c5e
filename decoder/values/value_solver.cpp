// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_solver.hpp"

#include <algorithm>
#include <iterator>

#include "arch/cpu/program_abi.hpp"

namespace backtrail::decoder::values {

using cpu::AccessKind;
using Place = WindowMemory::Place;
using Kind = ValueQueue::Kind;

ValueSolver::ValueSolver(ValueGraph& graph, EndState& end, std::vector<MappingChange> changes,
                         std::vector<StackLink> links)
    : graph_{graph},
      end_{end},
      effects_(graph.calls.size()),
      links_{std::move(links)},
      memory_{graph, end, std::move(changes)},
      queue_{graph, links_},
      spread_{graph, memory_, queue_} {
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    for (const std::uint32_t suspect : links_[i].suspects) {
      if (graph.accesses[suspect].kind != AccessKind::kStore) links_across_.emplace(suspect, i);
    }
  }
}

void ValueSolver::solve() {
  while (const auto item = queue_.next()) {
    switch (item->kind) {
      case Kind::kNode:
        relate(graph_.nodes[item->index]);
        break;
      case Kind::kAccess:
        handle_access(item->index);
        break;
      case Kind::kCall:
        handle_call(item->index);
        break;
      case Kind::kFrame:
        handle_frame(graph_.frames[item->index]);
        break;
      case Kind::kLink:
        handle_link(links_[item->index]);
        break;
    }
  }
}

void ValueSolver::relate(const Node& node) {
  std::array<Known, cpu::kMaxRefs> values;
  for (unsigned i = 0; i < node.count; ++i) values[i] = graph_.known[node.vars[i]];
  if (!cpu::deduce(node.relation, std::span{values}.first(node.count))) graph_.consistent = false;
  for (unsigned i = 0; i < node.count; ++i)
    queue_.learn(node.vars[i], values[i].value, values[i].mask);
}

void ValueSolver::handle_access(std::uint32_t access) {
  const Access& a = graph_.accesses[access];
  if (a.kind == AccessKind::kUnknownStore) return;
  if (a.kind == AccessKind::kRangeStore) {
    handle_range(access);
    return;
  }
  if (memory_.place(access) == Place::kListed) {
    spread_.spread(access);
    return;
  }
  if (memory_.place(access) != Place::kOpen) return;
  if (const Known& base = graph_.known[a.base]; base.all()) {
    place(access, base.value + static_cast<std::uint64_t>(a.offset));
  } else if (a.kind == AccessKind::kStore) {
    narrow(access);
  }
}

void ValueSolver::place(std::uint32_t access, std::uint64_t address) {
  const AccessKind kind = graph_.accesses[access].kind;
  memory_.settle(access, address);
  const Place place = memory_.place(access);
  if (place == Place::kConstant && kind == AccessKind::kLoad) spread_.take_constant(access);
  if (kind == AccessKind::kStore) wake_before(access);
  if (place == Place::kListed) spread_.spread(access);
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
  if (low <= high && memory_.bound(access, low, high)) wake_before(access);
}

void ValueSolver::handle_range(std::uint32_t access) {
  const Access& a = graph_.accesses[access];
  const Known& base = graph_.known[a.base];
  const Known& length = graph_.known[a.value];
  if (!base.all() || !length.all()) return;
  if (memory_.place(access) == Place::kOpen) {
    settle_range(access, base.value + static_cast<std::uint64_t>(a.offset), length.value);
  }
  if (a.fill != kNoVar) spread_.spread_fill(access);
}

void ValueSolver::settle_range(std::uint32_t access, std::uint64_t begin, std::uint64_t bytes) {
  if (memory_.place(access) != Place::kOpen) return;
  if (bytes != 0 && begin + bytes - 1 < begin) {
    // The upper half of all addresses is the kernel's.
    if (begin >> 63U == 0) return;
    bytes += begin;
    begin = 0;
  }
  memory_.settle_range(access, begin, bytes);
  wake_before(access);
  const auto [first, last] = links_across_.equal_range(access);
  for (auto link = first; link != last; ++link) queue_.enqueue(Kind::kLink, link->second);
}

void ValueSolver::handle_frame(const SignalFrame& frame) {
  const Known& before = graph_.known[frame.rsp_before];
  const Known& after = graph_.known[frame.rsp_after];
  if (!before.all() || !after.all()) return;
  const std::uint64_t below = before.value - arch::cpu::kRedZoneBytes - after.value;
  settle_range(frame.access, after.value, std::min<std::uint64_t>(below, graph_.frame_bytes));
}

void ValueSolver::handle_call(std::size_t index) {
  if (effects_[index] && effects_[index]->writes) return;
  const SystemCall& call = graph_.calls[index];
  std::array<Known, 7> in;
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = graph_.known[call.in[i]];
  effects_[index] = call_effects(in, graph_.known[call.result], graph_.known[call.stack]);
  if (!effects_[index] || !effects_[index]->writes) return;
  const auto& writes = *effects_[index]->writes;
  for (unsigned i = 0; i < kCallAccesses; ++i) {
    const MemoryRange range = i < writes.size() ? writes[i] : MemoryRange{};
    settle_range(call.first_access + i, range.begin, range.bytes);
  }
}

/// Call when a barrier is gone or blocks less: the accesses before it may now learn from those
/// after it, and pass on what they know.
void ValueSolver::wake_before(std::uint32_t access) {
  // Beyond this many accesses little is found for the effort.
  constexpr std::uint32_t kReach = 4000;
  std::uint32_t first = access > kReach ? access - kReach : 0;
  // No value crosses a store to an unknown address unless the stored one is known.
  const IndexSet& full = memory_.barriers().full();
  for (std::uint32_t i = full.previous(access); i != IndexSet::kNone && i > first;
       i = full.previous(i)) {
    const Access& store = graph_.accesses[i];
    const bool may_cross =
        store.kind == AccessKind::kStore && graph_.known[store.value].all(8U * store.size);
    if (!may_cross) first = i;
  }
  for (std::uint32_t i = first; i < access; ++i) {
    if (memory_.place(i) == Place::kListed) queue_.enqueue(Kind::kAccess, i);
  }
}

/// Returns the bytes of a load, as a mask of bits, that a store before it may have written.
/// A place is impossible if a byte that the store would have left there differs from the one that
/// was loaded (of those in `alive`), or if the load's address cannot be that.
std::uint64_t ValueSolver::may_have_written(std::uint32_t suspect, const Access& load,
                                            std::uint64_t alive) const {
  const Access& store = graph_.accesses[suspect];
  const Known& value = graph_.known[store.value];
  const Known& loaded = graph_.known[load.value];
  const Known& base = graph_.known[load.base];
  const std::uint64_t own = cpu::low_bits(8U * store.size);
  std::uint64_t written = 0;
  for (int first = 1 - store.size; first < load.size; ++first) {
    const auto shifted = [first](std::uint64_t bits) {
      return first < 0 ? bits >> (-8 * first) : bits << (8 * first);
    };
    if (memory_.place(suspect) != Place::kOpen) {
      const std::uint64_t load_at = memory_.address(suspect) - static_cast<std::uint64_t>(first);
      const std::uint64_t load_base = load_at - static_cast<std::uint64_t>(load.offset);
      if (((load_base ^ base.value) & base.mask) != 0) continue;
    }
    const std::uint64_t compared = shifted(value.mask & own) & alive;
    if (((shifted(value.value) ^ loaded.value) & compared) == 0) written |= shifted(own);
  }
  return written;
}

/// Returns true if a system call or a string instruction has turned out to write nothing, and to
/// clear no memory either, as madvise(2) does, and brk(2) that gives the heap back and takes it
/// again.
bool ValueSolver::leaves_memory(std::uint32_t access) const {
  if (memory_.place(access) == Place::kOpen || memory_.barriers().contains(access)) return false;
  const auto after = std::ranges::upper_bound(graph_.calls, access, {}, &SystemCall::first_access);
  if (after == graph_.calls.begin()) return true;
  const auto call = std::prev(after);
  if (access >= call->first_access + kCallAccesses) return true;
  const auto& effects = effects_[static_cast<std::size_t>(call - graph_.calls.begin())];
  return effects && !effects->mapping && !effects->heap;
}

/// The loaded bytes were stored there, unless a store in between can have written them.
void ValueSolver::handle_link(const StackLink& link) {
  const Access& earlier = graph_.accesses[link.earlier];
  const Access& later = graph_.accesses[link.later];
  // Accesses with known addresses are in the lists.
  if (memory_.place(link.earlier) != Place::kOpen && memory_.place(link.later) != Place::kOpen)
    return;
  const std::uint64_t own = cpu::low_bits(8U * later.size);
  const Known loaded = graph_.known[later.value];
  std::uint64_t alive = 0;
  for (unsigned bit = 0; bit < 8U * later.size; bit += 8) {
    if ((loaded.mask >> bit & 0xff) == 0xff) alive |= std::uint64_t{0xff} << bit;
  }
  bool is_equal = true;
  for (auto at = link.suspects.rbegin(); at != link.suspects.rend(); ++at) {
    const Access& suspect = graph_.accesses[*at];
    if (suspect.kind != AccessKind::kStore) {
      if (!leaves_memory(*at)) return;
      continue;
    }
    is_equal = false;
    alive &= ~may_have_written(*at, later, alive);
    if (alive == 0) return;
  }
  if (is_equal) {
    alive = own;
    const Known stored = graph_.known[earlier.value];
    queue_.learn(later.value, stored.value & stored.mask & own, stored.mask & own);
  }
  queue_.learn(earlier.value, loaded.value & loaded.mask & alive, loaded.mask & alive);
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
    if (window.steps[i].code != nullptr) continue;
    const std::uint64_t pc = window.steps[i].pc.value();
    constexpr std::uint64_t kLongest = 15;
    if (pc < change.end && pc + kLongest > change.begin) return Flaw{call.step, std::nullopt};
  }
  const auto same = [&](const MappingChange& known) {
    return known.step == change.step && known.begin == change.begin && known.end == change.end;
  };
  if (std::ranges::any_of(memory_.changes(), same)) return std::nullopt;
  for (std::uint32_t i = 0; i < graph_.accesses.size(); ++i) {
    const Access& access = graph_.accesses[i];
    if (access.step >= call.step) break;
    if (memory_.place(i) != Place::kListed && memory_.place(i) != Place::kConstant) continue;
    if (memory_.address(i) < change.end && memory_.address(i) + access.size > change.begin) {
      return Flaw{call.step, change};
    }
  }
  memory_.add_change(change);
  return std::nullopt;
}

bool ValueSolver::removes_mappings() const {
  return std::ranges::any_of(effects_,
                             [](const auto& effects) { return !effects || effects->removes; });
}

std::optional<std::uint64_t> ValueSolver::address(std::uint32_t access) const {
  if (memory_.place(access) == Place::kOpen) return std::nullopt;
  return memory_.address(access);
}

}  // namespace backtrail::decoder::values
