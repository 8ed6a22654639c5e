// SPDX-License-Identifier: Apache-2.0
#include "decoder/calls/call_outline.hpp"

#include "decoder/calls/call_rebuilder.hpp"

namespace backtrail::decoder {

void CallOutline::begin(const Call& call) {
  Open open{.number = calls_++};
  if (made_by_stub(call, code_)) {
    open.by_stub = came_back_.size();
    came_back_.push_back(false);
  }
  open_.push_back(open);
}

void CallOutline::rename(const Call& call) {
  const Open& top = open_.back();
  if (top.late != kNone) {
    late_[top.late] = call.first;
  } else if (top.has_calls) {
    renamed_[top.number] = call.first;
  }
}

void CallOutline::end(const Call& call) {
  const Open top = open_.back();
  open_.pop_back();
  const bool dropped = top.by_stub != kNone && call.end == CallEnd::kReturned;
  if (dropped) {
    came_back_[top.by_stub] = true;
  } else if (!open_.empty()) {
    open_.back().has_calls = true;
  }
}

void CallOutline::begin_around(const Call& call) {
  open_.push_back({.late = late_.size()});
  late_.push_back(call.first);
}

void OrderedCalls::begin_stretch(std::uint64_t position) {
  begins_stretch_ = false;
  const auto& ends = outline_.stretches_;
  const std::size_t first = ends[stretch_++];
  const std::size_t end = stretch_ < ends.size() ? ends[stretch_] : outline_.late_.size();
  late_.clear();
  for (std::size_t i = end; i-- > first;) {
    const TraceeAddr place = outline_.late_[i];
    late_.push_back({.function = code_.at(place),
                     .first = place,
                     .site = {},
                     .begin = CallBegin::kUnseen,
                     .begin_position = position});
    begins_(late_.back());
  }
}

/// Reports the held call. Only a rename that the outline knows can change its name from now on.
void OrderedCalls::tell_held() {
  if (!held_) return;
  // Calls begun since the held one are left out.
  std::size_t at = open_.size() - 1;
  while (open_[at].dropped) --at;
  Call& call = open_[at].call;
  const auto renamed = outline_.renamed_.find(*held_);
  if (renamed != outline_.renamed_.end()) {
    call.first = renamed->second;
    call.function = code_.at(call.first);
  }
  held_.reset();
  begins_(call);
}

void OrderedCalls::begin(const Call& call) {
  if (begins_stretch_) begin_stretch(call.begin_position);
  const std::uint64_t number = calls_++;
  const bool by_stub = made_by_stub(call, code_);
  const bool came_back = by_stub && outline_.came_back_[by_stub_++];
  const bool dropped = came_back || (!open_.empty() && open_.back().dropped);
  if (!dropped) {
    tell_held();
    held_ = number;
  }
  open_.push_back({call, dropped});
}

void OrderedCalls::rename(const Call& call) {
  Open& top = open_.back();
  // A reported call has its final name.
  if (!held_ || top.dropped) return;
  top.call.function = call.function;
  top.call.first = call.first;
}

void OrderedCalls::end(const Call& call) {
  if (!open_.back().dropped) {
    tell_held();
    Call& top = open_.back().call;
    top.end = call.end;
    top.end_position = call.end_position;
    ends_(top);
  }
  open_.pop_back();
}

void OrderedCalls::begin_around(const Call& call) {
  (void)call;
  open_.push_back({late_.back(), false});
  late_.pop_back();
}

}  // namespace backtrail::decoder
