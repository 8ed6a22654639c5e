// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/vcont_parser.hpp"

#include <algorithm>
#include <limits>

#include "server/rsp/gdb_signals.hpp"

namespace backtrail::server::handlers {
namespace {

using tracee::ResumeAction;
using tracee::ResumeKind;

std::optional<int> take_signal(PacketText& text) {
  const auto number = text.take_hex();
  if (!number || *number > std::numeric_limits<std::uint8_t>::max()) return std::nullopt;
  return from_gdb_signal(static_cast<int>(*number));
}

/// Takes c, Csig, s, Ssig, t or rSTART,END.
std::optional<ResumeAction> take_action(PacketText& text) {
  ResumeAction action;
  if (text.take('c')) return action;
  if (text.take('t')) {
    action.kind = ResumeKind::kStop;
    return action;
  }
  if (text.take('s')) {
    action.kind = ResumeKind::kStep;
    return action;
  }
  if (text.take('r')) {
    const auto range = take_hex_pair(text);
    if (!range) return std::nullopt;
    action.kind = ResumeKind::kRangeStep;
    action.range_begin = TraceeAddr{range->first};
    action.range_end = TraceeAddr{range->second};
    return action;
  }
  const bool steps = text.take('S');
  if (!steps && !text.take('C')) return std::nullopt;
  const auto signal = take_signal(text);
  if (!signal) return std::nullopt;
  action.kind = steps ? ResumeKind::kStep : ResumeKind::kContinue;
  action.signal = *signal;
  return action;
}

}  // namespace

std::optional<std::vector<VContAction>> parse_vcont(std::string_view packet) {
  std::vector<VContAction> actions;
  std::optional<VContAction> fallback;
  PacketText text{packet};
  do {
    const auto action = take_action(text);
    if (!action) return std::nullopt;
    if (text.take(':')) {
      const auto threads = take_thread_pattern(text);
      if (!threads) return std::nullopt;
      actions.push_back({*action, *threads});
    } else {
      fallback = VContAction{*action, {ThreadPattern::kAll, ThreadPattern::kAll}};
    }
    if (!text.at_end() && !text.next_is(';')) return std::nullopt;
  } while (text.take(';'));
  if (fallback) actions.push_back(*fallback);
  return actions;
}

const ResumeAction* action_for(const std::vector<VContAction>& actions, tracee::ThreadId thread) {
  const auto found = std::ranges::find_if(
      actions, [thread](const VContAction& action) { return action.threads.matches(thread); });
  return found == actions.end() ? nullptr : &found->action;
}

}  // namespace backtrail::server::handlers
