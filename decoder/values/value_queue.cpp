// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_queue.hpp"

namespace backtrail::decoder::values {

ValueQueue::ValueQueue(ValueGraph& graph, const std::vector<StackLink>& links) : graph_{graph} {
  const std::array sizes{graph.nodes.size(), graph.accesses.size(), graph.calls.size(),
                         graph.frames.size(), links.size()};
  std::uint32_t items = 0;
  for (std::size_t kind = 0; kind < sizes.size(); ++kind) {
    first_[kind] = items;
    items += static_cast<std::uint32_t>(sizes[kind]);
  }
  queued_.resize(items);
  index_uses(links);
  for (std::uint32_t number = items; number > 0; --number) enqueue(number - 1);
}

void ValueQueue::index_uses(const std::vector<StackLink>& links) {
  const auto each_use = [&](auto&& use) {
    std::uint32_t item = 0;
    for (const Node& node : graph_.nodes) {
      for (unsigned i = 0; i < node.count; ++i) use(node.vars[i], item);
      ++item;
    }
    for (const Access& access : graph_.accesses) {
      use(access.base, item);
      if (access.fill != kNoVar) use(access.fill, item);
      use(access.value, item++);
    }
    for (const SystemCall& call : graph_.calls) {
      for (const Var var : call.in) use(var, item);
      use(call.stack, item);
      use(call.result, item++);
    }
    for (const SignalFrame& frame : graph_.frames) {
      use(frame.rsp_before, item);
      use(frame.rsp_after, item++);
    }
    for (const StackLink& link : links) {
      use(graph_.accesses[link.earlier].value, item);
      for (const std::uint32_t suspect : link.suspects) {
        use(graph_.accesses[suspect].base, item);
        use(graph_.accesses[suspect].value, item);
      }
      // Known bits of its address alone tell some suspects from it.
      if (!link.suspects.empty()) use(graph_.accesses[link.later].base, item);
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

void ValueQueue::enqueue(std::uint32_t number) {
  if (queued_[number]) return;
  queued_[number] = true;
  queue_.push_back(number);
}

std::optional<ValueQueue::Item> ValueQueue::next() {
  if (queue_.empty()) return std::nullopt;
  const std::uint32_t number = queue_.front();
  queue_.pop_front();
  queued_[number] = false;
  unsigned kind = 0;
  while (kind + 1 < first_.size() && number >= first_[kind + 1]) ++kind;
  return Item{static_cast<Kind>(kind), number - first_[kind]};
}

void ValueQueue::learn(Var var, std::uint64_t value, std::uint64_t mask) {
  Known& known = graph_.known[var];
  const std::uint64_t before = known.mask;
  if (!known.learn(value, mask)) graph_.consistent = false;
  if (known.mask == before) return;
  for (std::uint32_t i = first_use_[var]; i < first_use_[var + 1]; ++i) enqueue(uses_[i]);
}

}  // namespace backtrail::decoder::values
