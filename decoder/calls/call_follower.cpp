// SPDX-License-Identifier: Apache-2.0
#include "decoder/calls/call_follower.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace backtrail::decoder {
namespace {

constexpr std::size_t kNoFrame = std::numeric_limits<std::size_t>::max();
/// Most frames searched for the target of a return or of unwinding.
constexpr std::size_t kMostUnwound = 4096;
/// Most suspended stacks that are remembered, and most frames of each.
constexpr std::size_t kMostParked = 256;
constexpr std::size_t kMostParkedFrames = 256;

}  // namespace

void CallFollower::feed(std::span<const Record> records, std::uint64_t end) {
  // The gap that begins a trace may have no number of its own.
  std::uint64_t left = records.size();
  for (const Record& record : records) {
    ++position_;
    block_ = end - std::min(end, left-- + 1);
    take(record);
  }
}

void CallFollower::finish() {
  ++position_;
  while (!stack_.empty()) pop(CallEnd::kOpen);
  parked_.clear();
  behind_switch_ = {};
  switches_are_told_ = false;
  position_ = 0;
}

std::vector<CallFollower::Open> CallFollower::open() const {
  std::vector<Open> out;
  out.reserve(stack_.size());
  for (const Frame& frame : stack_) out.push_back({frame.return_address, frame.signal});
  return out;
}

void CallFollower::take(const Record& record) {
  if (record.kind == RecordKind::kGap) {
    while (!stack_.empty()) pop(CallEnd::kGap);
    begin_anew(record.to);
  } else if (stack_.empty()) {
    begin_anew(record.to);
  } else if (record.kind == RecordKind::kAsync) {
    push(call_of(record, CallBegin::kSignal), record.from, true);
  } else {
    take_branch(record);
  }
}

void CallFollower::take_branch(const Record& record) {
  const arch::InsnFacts facts = executed_facts(past_, insns_, block_, record.from);
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

/// Handles a call, jump or return from unreadable code. Only a return to a known caller can be
/// recognised.
void CallFollower::take_unknown(const Record& record) {
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].signal || stack_[i].return_address != record.to) continue;
    pop_above(i, CallEnd::kGap);
    pop(CallEnd::kReturned);
    return;
  }
  if (!stack_.back().call.function.known() && !code_.at(record.to).known()) return;
  while (!stack_.empty()) pop(CallEnd::kGap);
  begin_anew(record.to);
}

void CallFollower::take_call(const Record& record, const arch::InsnFacts& facts) {
  const TraceeAddr next = record.from + facts.length;
  // "call next; pop" reads the pc and calls nothing.
  if (record.to == next) return;
  if (stack_.back().call.function.stack_switch == StackSwitch::kLeaves) {
    park(0);
    leave_stack();
  }
  push(call_of(record, CallBegin::kCalled), next);
}

void CallFollower::take_return(const Record& record) {
  if (stack_.back().call.function.stack_switch == StackSwitch::kSwaps) {
    switch_stack(record, code_.at(record.to));
    return;
  }
  if (stack_.size() == 1 && behind_switch_.value() != 0 && go_on(record)) return;
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].return_address != record.to || stack_[i].signal) continue;
    if (i + 1 < stack_.size() && code_.at(record.from).id != stack_[i].call.function.id) {
      // The return belongs to another call: the program put a different stack at this return
      // address.
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
  // A return used as a jump, as in lazy binding and retpolines.
  const bool is_jump = function.known() && function.entry == record.to;
  if (!is_jump && !switches_are_told_ && resume(record)) return;
  // A handler returns to the code that calls sigreturn, which has no name in stripped libraries.
  if (is_jump || stack_.back().signal || (!function.known() && stack_.size() > 1)) {
    replace_top(record, function);  // Or the return address was overwritten.
  } else if (const std::size_t frame = frame_of(function); frame != kNoFrame) {
    pop_above(frame, CallEnd::kUnwound);  // An exception's landing pad.
  } else {
    grow(record);
  }
}

/// Handles the return from a signal handler, to any address.
void CallFollower::take_system_return(const Record& record) {
  for (std::size_t i = stack_.size(); i-- > 0;) {
    if (!stack_[i].signal) continue;
    const TraceeAddr interrupted = stack_[i].return_address;
    pop_above(i, CallEnd::kUnwound);
    pop(CallEnd::kReturned);
    const FunctionRef function = code_.at(record.to);
    if (stack_.empty() || function.id == stack_.back().call.function.id) return;
    if (function.known() && function.entry == record.to) {
      push(call_of(record, CallBegin::kCalled), interrupted);  // The handler injected a call.
    } else {
      arrive(record, function);  // The handler chose another place.
    }
    return;
  }
  take_jump(record);
}

void CallFollower::take_jump(const Record& record) {
  const FunctionRef function = code_.at(record.to);
  const FunctionRef& top = stack_.back().call.function;
  if (function.id == top.id) return;
  if (top.stack_switch >= StackSwitch::kGoesOn && function.stack_switch == StackSwitch::kNone) {
    switch_stack(record, function);
  } else if (function.entry == record.to && function.known()) {
    replace_top(record, function);
  } else {
    arrive(record, function);
  }
}

/// Handles an arrival in the middle of a function without a matching call or return.
void CallFollower::arrive(const Record& record, const FunctionRef& function) {
  if (const std::size_t frame = frame_of(function); frame != kNoFrame) {
    park(frame + 1);
    pop_above(frame, CallEnd::kUnwound);
  } else if (switches_are_told_ || !resume(record)) {
    replace_top(record, function);
  }
}

/// Remembers the frames from `frame` on: their stack may be resumed later.
void CallFollower::park(std::size_t frame) {
  if (frame + 1 >= stack_.size()) return;  // A single frame is not worth resuming.
  const std::size_t count = std::min(stack_.size() - frame, kMostParkedFrames);
  if (parked_.size() == kMostParked) parked_.erase(parked_.begin());
  parked_.emplace_back(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
}

/// Resumes a parked stack if control goes to the return address of one of its calls.
bool CallFollower::resume(const Record& record) {
  for (std::size_t p = parked_.size(); p-- > 0;) {
    std::vector<Frame>& frames = parked_[p];
    std::size_t callee = frames.size();
    while (--callee > 0 && frames[callee].return_address != record.to) continue;
    if (callee == 0) continue;
    std::vector<Frame> back{frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(callee)};
    frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(callee));
    // The remaining frames were switched to from there and may be resumed too.
    if (frames.size() < 2) parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(p));
    // The resumed frames replace the top frame.
    back.front().return_address = stack_.back().return_address;
    back.front().signal = stack_.back().signal;
    pop(CallEnd::kSwitched);
    push_again(record, back, record.from);
    return true;
  }
  return false;
}

/// Closes all calls: no open call made the calls that follow.
void CallFollower::leave_stack() {
  while (!stack_.empty()) pop(CallEnd::kSwitched);
  switches_are_told_ = true;
  behind_switch_ = {};
  stretch_begin_ = position_;
  sink_.stretch();
}

/// Follows a switch to a stack that was left earlier, or to a new one.
void CallFollower::switch_stack(const Record& record, const FunctionRef& function) {
  const bool swaps = stack_.back().call.function.stack_switch == StackSwitch::kSwaps;
  const bool comes_back_here = stack_.back().return_address == record.to;
  for (std::size_t i = swaps ? 0 : stack_.size(); i-- > 0;) {
    if (stack_[i].return_address != record.to) continue;
    pop_above(i, CallEnd::kSwitched);  // The function only switched to a larger stack and back.
    pop(CallEnd::kReturned);
    return;
  }
  const std::size_t only = swaps && !comes_back_here ? only_one_left_at(record.to) : kNoFrame;
  std::vector<Frame> back;
  if (only != kNoFrame) back = take_parked(only, 1);
  if (swaps) park(0);
  leave_stack();
  if (!back.empty()) {
    push_again(record, back);
    return;
  }
  const bool begins = function.known() && function.entry == record.to;
  push(call_of(record, begins ? CallBegin::kCalled : CallBegin::kResumed), TraceeAddr{});
  returned_to_.clear();
  if (!begins) behind_switch_ = record.to;
}

/// Returns the only parked stack with this return address; kNoFrame if there are none or several.
std::size_t CallFollower::only_one_left_at(TraceeAddr behind) const {
  std::size_t found = kNoFrame;
  for (std::size_t p = 0; p < parked_.size(); ++p) {
    if (parked_[p].back().return_address != behind) continue;
    if (found != kNoFrame) return kNoFrame;
    found = p;
  }
  return found;
}

/// Uses a return of the resumed function to tell which parked stack continues. While several match,
/// only the running function is known.
/// @return True if the stack is now known.
bool CallFollower::go_on(const Record& record) {
  returned_to_.push_back(record.to);
  std::size_t found = kNoFrame;
  for (std::size_t p = parked_.size(); p-- > 0;) {
    if (!may_go_on(parked_[p])) continue;
    if (found == kNoFrame) found = p;
    if (!is_alike(parked_[p], parked_[found])) return false;
  }
  behind_switch_ = {};
  if (found == kNoFrame) return false;
  const std::vector<Frame> back = take_parked(found, returned_to_.size() + 1);
  pop(CallEnd::kReturned);
  push_again(record, back);
  return true;
}

/// Returns true if the stack was left at the resumption point and its return addresses match the
/// returns so far.
bool CallFollower::may_go_on(std::span<const Frame> frames) const {
  const std::size_t returned = returned_to_.size();
  if (frames.size() < returned + 2 || frames.back().return_address != behind_switch_) return false;
  for (std::size_t i = 0; i < returned; ++i) {
    if (frames[frames.size() - 2 - i].return_address != returned_to_[i]) return false;
  }
  return true;
}

bool CallFollower::is_alike(std::span<const Frame> x, std::span<const Frame> y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Frame& a, const Frame& b) {
    return a.return_address == b.return_address;
  });
}

/// Removes a parked stack and returns its frames without the newest `without` ones.
std::vector<CallFollower::Frame> CallFollower::take_parked(std::size_t which, std::size_t without) {
  std::vector<Frame> frames = std::move(parked_[which]);
  parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(which));
  frames.resize(frames.size() - without);
  return frames;
}

void CallFollower::push_again(const Record& record, std::span<const Frame> frames,
                              TraceeAddr site) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    Call call = call_of(record, CallBegin::kResumed);
    call.function = frames[i].call.function;
    call.site = i == 0 ? site : TraceeAddr{};
    if (i + 1 < frames.size()) call.first = frames[i + 1].return_address;
    push(call, frames[i].return_address, frames[i].signal);
  }
}

std::size_t CallFollower::frame_of(const FunctionRef& function) const {
  if (!function.known()) return kNoFrame;
  const std::size_t last = stack_.size() > kMostUnwound ? stack_.size() - kMostUnwound : 0;
  for (std::size_t i = stack_.size(); i-- > last;) {
    if (stack_[i].call.function.id == function.id) return i;
  }
  return kNoFrame;
}

Call CallFollower::call_of(const Record& record, CallBegin begin) {
  Call call;
  call.function = code_.at(record.to);
  call.first = record.to;
  call.site = record.from;
  call.begin = begin;
  call.begin_position = position_;
  return call;
}

void CallFollower::push(const Call& call, TraceeAddr return_address, bool signal) {
  stack_.push_back({call, return_address, signal});
  sink_.begin(call);
}

/// Execution continues in `function`, which replaces the newest frame.
void CallFollower::replace_top(const Record& record, const FunctionRef& function) {
  Frame& top = stack_.back();
  if (top.call.function.stub) {
    // The stub's caller is the caller of the function.
    top.call.function = function;
    top.call.first = record.to;
    sink_.rename(top.call);
    return;
  }
  const TraceeAddr return_address = top.return_address;
  const bool signal = top.signal;
  pop(CallEnd::kTailCalled);
  push(call_of(record, CallBegin::kTailCalled), return_address, signal);
}

void CallFollower::begin_anew(TraceeAddr at) {
  stretch_begin_ = position_;
  behind_switch_ = {};
  sink_.stretch();
  push(call_of({TraceeAddr{}, at}, CallBegin::kUnseen), TraceeAddr{});
}

/// Handles a return to a caller that was running before the stretch began: it made all root calls
/// since then.
void CallFollower::grow(const Record& record) {
  pop_above(0, CallEnd::kUnwound);
  pop(CallEnd::kReturned);
  Call call = call_of({TraceeAddr{}, record.to}, CallBegin::kUnseen);
  call.begin_position = stretch_begin_;
  stack_.push_back({call, TraceeAddr{}, false});
  sink_.begin_around(call);
}

void CallFollower::pop(CallEnd end) {
  Call& call = stack_.back().call;
  call.end = end;
  call.end_position = position_;
  sink_.end(call);
  stack_.pop_back();
}

void CallFollower::pop_above(std::size_t frame, CallEnd end) {
  while (stack_.size() > frame + 1) pop(end);
}

}  // namespace backtrail::decoder
