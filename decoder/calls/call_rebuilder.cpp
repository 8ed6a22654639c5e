#include "decoder/calls/call_rebuilder.hpp"

#include <algorithm>
#include <utility>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kNoFrame = std::numeric_limits<std::size_t>::max();
/// How far down a return or an unwinding is looked for.
constexpr std::size_t kMostUnwound = 4096;
/// Stacks that are remembered while others run, and how much of each.
constexpr std::size_t kMostParked = 64;
constexpr std::size_t kMostParkedFrames = 256;

/// Parents can stand behind their children (callers that showed only when one returned to them).
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

/// Indices of all, callers first. Only callers that showed late, which are few, stand elsewhere.
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

void CallRebuilder::feed(std::span<const Record> records) {
  for (const Record& record : records) {
    ++position_;
    take(record);
  }
}

std::vector<Call> CallRebuilder::finish() {
  ++position_;
  while (!stack_.empty()) pop(CallEnd::kOpen);
  set_depths(calls_);
  std::vector<Call> out = in_order(std::exchange(calls_, {}));
  parked_.clear();
  roots_.clear();
  position_ = 0;
  return out;
}

void CallRebuilder::take(const Record& record) {
  if (record.kind == RecordKind::kGap) {
    while (!stack_.empty()) pop(CallEnd::kGap);
    begin_anew(record.to);
  } else if (stack_.empty()) {
    begin_anew(record.to);
  } else if (record.kind == RecordKind::kAsync) {
    push(record, CallBegin::kSignal, record.from);
    stack_.back().signal = true;
  } else {
    take_branch(record);
  }
}

void CallRebuilder::take_branch(const Record& record) {
  const arch::InsnFacts facts = insns_.at(record.from);
  if (!facts.known()) {
    take_unknown(record);
    return;
  }
  switch (facts.kind) {
    using enum arch::InsnKind;
    case kCall:
    case kIndirectCall:
      take_call(record, facts);
      break;
    case kReturn:
      take_return(record);
      break;
    case kSystemCall:
    case kFarTransfer:
      take_system_return(record);
      break;
    default:
      take_jump(record);
      break;
  }
}

/// From code that cannot be read: a call, a jump or a return. Only a return to a caller that is
/// known can be told.
void CallRebuilder::take_unknown(const Record& record) {
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].signal || stack_[i].return_address != record.to) continue;
    pop_above(i, CallEnd::kGap);
    pop(CallEnd::kReturned);
    return;
  }
  if (!stack_.back().function.known() && !code_.at(record.to).known()) return;
  while (!stack_.empty()) pop(CallEnd::kGap);
  begin_anew(record.to);
}

void CallRebuilder::take_call(const Record& record, const arch::InsnFacts& facts) {
  const TraceeAddr next = record.from + facts.length;
  // "call next; pop" reads the pc; nothing is called.
  if (record.to != next) push(record, CallBegin::kCalled, next);
}

void CallRebuilder::take_return(const Record& record) {
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].return_address != record.to || stack_[i].signal) continue;
    if (i + 1 < stack_.size() && code_.at(record.from).id != stack_[i].function.id) {
      // Not this call's own return: somebody put another stack under the return address.
      park(i);
      pop_above(i, CallEnd::kSwitched);
      pop(CallEnd::kSwitched);
      return;
    }
    pop_above(i, CallEnd::kUnwound);
    pop(CallEnd::kReturned);
    return;
  }
  const FunctionRef function = code_.at(record.to);
  // A return used as a jump: lazy binding, retpolines.
  const bool is_jump = function.known() && function.entry == record.to;
  if (!is_jump && resume(record)) return;
  if (is_jump || (!function.known() && stack_.size() > 1)) {
    replace_top(record, function);  // Or the return address was overwritten.
  } else if (const std::size_t frame = frame_of(function); frame != kNoFrame) {
    pop_above(frame, CallEnd::kUnwound);  // Into a landing pad.
  } else {
    grow(record);
  }
}

/// Back from a signal handler, wherever to.
void CallRebuilder::take_system_return(const Record& record) {
  for (std::size_t i = stack_.size(); i-- > 0;) {
    if (!stack_[i].signal) continue;
    pop_above(i, CallEnd::kUnwound);
    pop(CallEnd::kReturned);
    if (!stack_.empty() && code_.at(record.to).id != stack_.back().function.id) {
      arrive(record, code_.at(record.to));  // The handler chose another place.
    }
    return;
  }
  take_jump(record);
}

void CallRebuilder::take_jump(const Record& record) {
  const FunctionRef function = code_.at(record.to);
  const FunctionRef& top = stack_.back().function;
  if (function.id == top.id) return;
  if (function.entry == record.to && function.known()) {
    replace_top(record, function);
  } else {
    arrive(record, function);
  }
}

/// In the middle of a function, without a call or a return that fits.
void CallRebuilder::arrive(const Record& record, const FunctionRef& function) {
  if (const std::size_t frame = frame_of(function); frame != kNoFrame) {
    park(frame + 1);
    pop_above(frame, CallEnd::kUnwound);
  } else if (!resume(record)) {
    replace_top(record, function);
  }
}

/// Remembers the frames from `frame` on: they may be on a stack that is only left for a while.
void CallRebuilder::park(std::size_t frame) {
  if (frame + 1 >= stack_.size()) return;  // One frame is nothing to come back to.
  const std::size_t count = std::min(stack_.size() - frame, kMostParkedFrames);
  if (parked_.size() == kMostParked) parked_.erase(parked_.begin());
  parked_.emplace_back(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
}

/// Goes on where a parked stack was left, when control goes to where a call of its should return.
bool CallRebuilder::resume(const Record& record) {
  for (std::size_t p = parked_.size(); p-- > 0;) {
    std::vector<Frame>& frames = parked_[p];
    std::size_t callee = frames.size();
    while (--callee > 0 && frames[callee].return_address != record.to) continue;
    if (callee == 0) continue;
    const std::vector<Frame> back{frames.begin(),
                                  frames.begin() + static_cast<std::ptrdiff_t>(callee)};
    frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(callee));
    // What is left of it had been switched to from there, and may be gone back to too.
    if (frames.size() < 2) parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(p));
    const Frame old = stack_.back();
    pop(CallEnd::kSwitched);
    for (std::size_t i = 0; i < back.size(); ++i) {
      push(record, CallBegin::kResumed, i == 0 ? old.return_address : back[i].return_address);
      stack_.back().function = back[i].function;
      stack_.back().signal = i == 0 ? old.signal : back[i].signal;
      calls_.back().function = back[i].function;
      if (i != 0) calls_.back().site = TraceeAddr{};
    }
    return true;
  }
  return false;
}

std::size_t CallRebuilder::frame_of(const FunctionRef& function) const {
  if (!function.known()) return kNoFrame;
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].function.id == function.id) return i;
  }
  return kNoFrame;
}

void CallRebuilder::push(const Record& record, CallBegin begin, TraceeAddr return_address) {
  Call call;
  call.function = code_.at(record.to);
  call.first = record.to;
  call.site = record.from;
  call.parent = stack_.empty() ? kNoCall : stack_.back().call;
  call.begin = begin;
  call.begin_position = position_;
  if (stack_.empty()) roots_.push_back(calls_.size());
  stack_.push_back({calls_.size(), call.function, return_address});
  calls_.push_back(call);
}

/// Execution goes on in `function` in place of the newest frame.
void CallRebuilder::replace_top(const Record& record, const FunctionRef& function) {
  Frame& top = stack_.back();
  if (top.function.stub) {
    // Who called the stub called this.
    top.function = function;
    calls_[top.call].function = function;
    calls_[top.call].first = record.to;
    return;
  }
  const Frame old = top;
  pop(CallEnd::kTailCalled);
  push(record, CallBegin::kTailCalled, old.return_address);
  stack_.back().signal = old.signal;
}

void CallRebuilder::begin_anew(TraceeAddr at) {
  roots_.clear();
  stretch_begin_ = position_;
  push({TraceeAddr{}, at}, CallBegin::kUnseen, TraceeAddr{});
}

/// A return to a caller that was running before anything was seen: everything since was called by
/// it.
void CallRebuilder::grow(const Record& record) {
  pop_above(0, CallEnd::kUnwound);
  pop(CallEnd::kReturned);
  const std::vector<std::size_t> former = std::exchange(roots_, {});
  push({TraceeAddr{}, record.to}, CallBegin::kUnseen, TraceeAddr{});
  const std::size_t root = stack_.back().call;
  calls_[root].begin_position = stretch_begin_;
  for (const std::size_t call : former) calls_[call].parent = root;
}

void CallRebuilder::pop(CallEnd end) {
  Call& call = calls_[stack_.back().call];
  call.end = end;
  call.end_position = position_;
  stack_.pop_back();
}

void CallRebuilder::pop_above(std::size_t frame, CallEnd end) {
  while (stack_.size() > frame + 1) pop(end);
}

}  // namespace backtrail::decoder
