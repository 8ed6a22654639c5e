// SPDX-License-Identifier: Apache-2.0
#include "decoder/calls/call_rebuilder.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::decoder {
namespace {

/// Sets the depth of each call. A caller may come after its callees in the list if it showed late.
void set_depths(std::vector<Call>& calls) {
  constexpr std::uint32_t kUnset = ~0U;
  for (Call& call : calls) call.depth = kUnset;
  std::vector<std::size_t> chain;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    std::size_t at = i;
    for (; at != kNoCall && calls[at].depth == kUnset; at = calls[at].parent) chain.push_back(at);
    std::uint32_t depth = at == kNoCall ? 0 : calls[at].depth + 1;
    for (; !chain.empty(); chain.pop_back()) calls[chain.back()].depth = depth++;
  }
}

bool is_earlier(const Call& x, const Call& y) {
  if (x.begin_position != y.begin_position) return x.begin_position < y.begin_position;
  return x.depth < y.depth;
}

/// Returns all indices, callers first. Only the few callers that showed late are out of order.
std::vector<std::size_t> callers_first(const std::vector<Call>& calls) {
  std::vector<std::size_t> in_place;
  std::vector<std::size_t> late;
  in_place.reserve(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const bool fits = in_place.empty() || !is_earlier(calls[i], calls[in_place.back()]);
    (fits ? in_place : late).push_back(i);
  }
  const auto by_begin = [&](std::size_t a, std::size_t b) {
    return is_earlier(calls[a], calls[b]);
  };
  std::stable_sort(late.begin(), late.end(), by_begin);
  if (late.empty()) return in_place;
  std::vector<std::size_t> order(calls.size());
  std::merge(in_place.begin(), in_place.end(), late.begin(), late.end(), order.begin(), by_begin);
  return order;
}

std::vector<Call> in_order(std::vector<Call> calls) {
  const std::vector<std::size_t> order = callers_first(calls);
  if (std::is_sorted(order.begin(), order.end())) return calls;
  std::vector<std::size_t> place(calls.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<Call> out;
  out.reserve(calls.size());
  for (const std::size_t index : order) {
    out.push_back(calls[index]);
    if (out.back().parent != kNoCall) out.back().parent = place[out.back().parent];
  }
  return out;
}

}  // namespace

void CallRebuilder::begin(const Call& call) {
  if (open_.empty()) roots_.push_back(calls_.size());
  const std::size_t parent = open_.empty() ? kNoCall : open_.back();
  open_.push_back(calls_.size());
  calls_.push_back(call);
  calls_.back().parent = parent;
}

void CallRebuilder::rename(const Call& call) {
  Call& known = calls_[open_.back()];
  known.function = call.function;
  known.first = call.first;
}

void CallRebuilder::end(const Call& call) {
  Call& known = calls_[open_.back()];
  known.end = call.end;
  known.end_position = call.end_position;
  open_.pop_back();
}

void CallRebuilder::begin_around(const Call& call) {
  const std::vector<std::size_t> former = std::exchange(roots_, {});
  begin(call);
  for (const std::size_t index : former) calls_[index].parent = open_.back();
}

std::vector<Call> CallRebuilder::finish() {
  follower_.finish();
  set_depths(calls_);
  roots_.clear();
  return in_order(std::exchange(calls_, {}));
}

bool made_by_stub(const Call& call, CodeMap& code) {
  return call.begin == CallBegin::kCalled && code.at(call.site).stub;
}

void drop_lazy_binding(std::vector<Call>& calls, CodeMap& code) {
  constexpr std::size_t kDropped = kNoCall - 1;
  std::vector<std::size_t> place(calls.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Call call = calls[i];
    const std::size_t parent = call.parent;
    const bool binding = call.end == CallEnd::kReturned && made_by_stub(call, code);
    if (binding || (parent != kNoCall && place[parent] == kDropped)) {
      place[i] = kDropped;
      continue;
    }
    if (parent != kNoCall) call.parent = place[parent];
    place[i] = kept;
    calls[kept++] = call;
  }
  calls.resize(kept);
}

}  // namespace backtrail::decoder
