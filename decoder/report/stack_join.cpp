// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/stack_join.hpp"

#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_map>

namespace backtrail::decoder {
namespace {

/// Returns the indices of the calls that had not ended, outermost first.
std::vector<std::size_t> open_calls(const std::vector<Call>& calls) {
  std::vector<std::size_t> out;
  for (std::size_t i = calls.size(); i-- > 0;) {
    if (calls[i].end != CallEnd::kOpen) continue;
    // The open calls are the newest one and its callers.
    for (std::size_t at = i; at != kNoCall; at = calls[at].parent) out.push_back(at);
    break;
  }
  return {out.rbegin(), out.rend()};
}

/// Returns the frame that the return address of the call at `frame` leads to; nullopt if the next
/// frame is a different one.
std::optional<std::size_t> caller_of(std::span<const StackFrame> frames, std::size_t frame,
                                     const CallFollower::Open& call) {
  const std::size_t next = frame + 1;
  const std::size_t behind = next + 1;
  if (call.signal && behind < frames.size() && frames[next].is_signal_frame &&
      frames[behind].pc == call.return_address) {
    return behind;
  }
  if (next < frames.size() && frames[next].pc == call.return_address) return next;
  return std::nullopt;
}

/// Finds out whether a call instruction ends at an address.
class CallSites {
 public:
  explicit CallSites(InsnCache& insns) : insns_{insns} {}
  bool is_behind_call(TraceeAddr address) {
    // Recursion repeats return addresses, so results are remembered.
    const auto [place, is_new] = known_.try_emplace(address, false);
    if (is_new) place->second = look(address);
    return place->second;
  }

 private:
  [[nodiscard]] bool look(TraceeAddr address) const {
    constexpr std::uint64_t kShortest = 2;
    constexpr std::uint64_t kLongest =
        7;  // Redundant prefixes can make a call longer; those are not recognised.
    std::array<std::uint8_t, kLongest> bytes{};
    const std::size_t count = insns_.code().read_code(address - kLongest, bytes);
    for (std::uint64_t length = kShortest; count == kLongest && length <= kLongest; ++length) {
      const auto insn = std::span{bytes}.last(length);
      const arch::InsnFacts facts = arch::decode_insn(insns_.code().isa(), address - length, insn);
      const bool calls =
          facts.kind == arch::InsnKind::kCall || facts.kind == arch::InsnKind::kIndirectCall;
      if (calls && facts.length == length) return true;
    }
    return false;
  }

  InsnCache& insns_;
  std::unordered_map<TraceeAddr, bool> known_;
};

/// Returns the number of frames before the first one whose return address follows no call; all if
/// there is none.
std::size_t believable_frames(std::span<const StackFrame> frames, std::size_t first,
                              InsnCache& insns) {
  CallSites sites{insns};
  for (std::size_t i = first; i < frames.size(); ++i) {
    // A handler returns to the restorer, which no call precedes.
    if (frames[i].is_signal_frame || !frames[i].is_return) continue;
    if (!sites.is_behind_call(frames[i].pc)) return i;
  }
  return frames.size();
}

/// Returns the frames from `first` on as calls, outermost first. The signal frame that the kernel
/// pushed for a handler is no call.
std::vector<Call> calls_of(std::span<const StackFrame> frames, std::size_t first, CodeMap& code) {
  std::vector<Call> out;
  for (std::size_t i = frames.size(); i-- > first;) {
    if (frames[i].is_signal_frame && i + 1 < frames.size()) continue;
    Call call;
    call.first = frames[i].place();
    call.function = code.at(call.first);
    call.begin = CallBegin::kUnseen;
    call.from_stack = true;
    if (i + 1 < frames.size()) {
      const bool handler = frames[i + 1].is_signal_frame && i + 2 < frames.size();
      call.site = frames[handler ? i + 2 : i + 1].place();
      if (handler) call.begin = CallBegin::kSignal;
    }
    out.push_back(call);
  }
  return out;
}

/// Makes `outer` the callers of the last root call, at index `root`, and of everything in it.
void put_around(std::vector<Call> outer, std::size_t root, std::vector<Call>& calls) {
  const std::size_t count = outer.size();
  const bool alone = root == calls.size();
  const std::uint64_t position = alone ? 0 : calls[root].begin_position;
  const std::uint64_t end = alone ? 0 : calls[root].end_position;
  for (std::size_t i = 0; i < count; ++i) {
    outer[i].parent = i == 0 ? kNoCall : root + i - 1;
    outer[i].depth = static_cast<std::uint32_t>(i);
    outer[i].begin_position = position;
    outer[i].end_position = end;
  }
  for (std::size_t i = root; i < calls.size(); ++i) {
    Call& call = calls[i];
    if (i == root) {
      call.parent = root + count - 1;
    } else if (call.parent != kNoCall) {
      call.parent += count;
    }
    call.depth += static_cast<std::uint32_t>(count);
  }
  calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(root), outer.begin(), outer.end());
}

}  // namespace

JoinedStack join_stack(const Stack& stack, ThreadCalls& traced, InsnCache& insns, CodeMap& code) {
  JoinedStack out;
  out.result = stack.end == StackEnd::kOutermost ? JoinedStack::Result::kComplete
                                                 : JoinedStack::Result::kCut;
  std::span<const StackFrame> frames = stack.frames;
  const std::vector<std::size_t> open = open_calls(traced.calls);
  if (frames.empty() || open.size() != traced.open.size()) {
    out.result = JoinedStack::Result::kCut;
    return out;
  }
  if (open.size() == 1) {
    // A single open call has no return address to compare, so the functions are compared.
    const FunctionRef here = code.at(frames.front().place());
    const FunctionRef& last = traced.calls[open.front()].function;
    if (here.known() && last.known() && here.id != last.id) {
      out.result = JoinedStack::Result::kDisagrees;
      out.call = open.front();
      return out;
    }
  }
  std::size_t frame = 0;
  for (std::size_t i = open.size(); i-- > 0;) {
    const TraceeAddr by_call = traced.open[i].return_address;
    if (i == 0 && by_call == TraceeAddr{}) break;
    const auto caller = caller_of(frames, frame, traced.open[i]);
    if (caller) {
      frame = *caller;
      continue;
    }
    // If unwinding lacked information for the frame, there is no contradiction.
    if (frame + 1 == frames.size() && stack.end == StackEnd::kNoUnwindInfo) return out;
    out.result = JoinedStack::Result::kDisagrees;
    out.call = open[i];
    out.by_call = by_call;
    if (frame + 1 < frames.size()) out.by_stack = frames[frame + 1].pc;
    return out;
  }
  const bool has_root = !open.empty();
  const bool root_returns = has_root && traced.open.front().return_address != TraceeAddr{};
  // The trace already has the frame of the outermost open call.
  std::size_t first = has_root && !root_returns ? frame + 1 : frame;
  const std::size_t root = has_root ? open.front() : traced.calls.size();
  if (const std::size_t count = believable_frames(frames, frame + 1, insns);
      count < frames.size()) {
    out.result = JoinedStack::Result::kNoReturn;
    out.by_stack = frames[count].pc;
    frames = frames.first(count);
  }
  if (!frames.empty()) out.outermost = frames.back().place();
  if (first >= frames.size()) return out;
  const bool by_signal = has_root && frames[first].is_signal_frame && first + 1 < frames.size();
  if (by_signal) ++first;
  if (has_root && traced.calls[root].site == TraceeAddr{}) {
    traced.calls[root].site = frames[first].place();
    if (by_signal) traced.calls[root].begin = CallBegin::kSignal;
  }
  std::vector<Call> outer = calls_of(frames, first, code);
  out.first = root;
  out.count = outer.size();
  put_around(std::move(outer), root, traced.calls);
  return out;
}

}  // namespace backtrail::decoder
