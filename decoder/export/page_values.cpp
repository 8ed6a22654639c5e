// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/page_values.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "decoder/report/call_values.hpp"
#include "decoder/report/crash_signature.hpp"

namespace backtrail::decoder {

void PageValues::read(const ThreadLane& lane, std::span<const std::uint32_t> blocks) {
  const std::size_t last = blocks.size() - 1;
  const std::size_t oldest = last - std::min<std::size_t>(last, kMostValueRecords);
  for (std::size_t position = blocks.size(); position-- > oldest;) {
    const std::vector<PageCode::LineBegin>& lines = shown_lines(blocks[position]);
    for (std::size_t line = lines.size(); line-- > 0;) {
      if (places_.size() >= kMostValueLines) return;
      if (lines[line].address == TraceeAddr{}) continue;
      const bool at_end = position == last && line + 1 == lines.size();
      const TraceeAddr pc = at_end ? lane.pc : lines[line].address;
      const std::unique_ptr<FrameState> state =
          at_end ? values_.at_end(lane.tid)
                 : values_.in_past(lane.tid, {last - position, pc, lines[line].instruction + 1});
      if (state == nullptr) continue;
      add(pc, *state, places_.emplace_back(std::vector<std::uint64_t>{position + 1, line}));
    }
  }
}

const std::vector<PageCode::LineBegin>& PageValues::shown_lines(std::uint32_t block) {
  const auto [found, is_new] = lines_.try_emplace(block);
  if (!is_new) return found->second;
  found->second = code_.line_begins(block);
  for (PageCode::LineBegin& line : found->second) {
    const bool is_shown = symbols_.variables().problem(line.address).empty() &&
                          !is_run_time_library(symbols_.module_place(line.address));
    if (!is_shown) line.address = TraceeAddr{};
  }
  return found->second;
}

void PageValues::add(TraceeAddr pc, FrameState& state, std::vector<std::uint64_t>& place) {
  const std::vector<FrameVariables> frames = symbols_.variables().at(pc, state);
  // Both lists end with the function itself; the one of names may have more inlined ones.
  const std::vector<CodeFrame>& named = symbols_.frames_at(pc);
  const std::size_t missing = named.size() - std::min(named.size(), frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const std::size_t frame = std::min(missing + i, named.size() - 1);
    const std::uint32_t function = names_.of_text(symbols_.text(named[frame].name));
    // A variable hides those of outer blocks with the same name.
    std::set<std::string_view> seen;
    for (const auto* list : {&frames[i].locals, &frames[i].arguments}) {
      for (const Variable& one : *list) {
        if (one.name.empty() || !seen.insert(one.name).second) continue;
        place.push_back(variable(function, one));
        place.push_back(one.value ? text(*one.value) : 0);
      }
    }
  }
}

std::uint32_t PageValues::variable(std::uint32_t function, const Variable& variable) {
  const Key key{function, variable.name, variable.type};
  const auto [found, is_new] =
      variable_ids_.try_emplace(key, static_cast<std::uint32_t>(variables_.size()));
  if (is_new) variables_.push_back(key);
  return found->second;
}

std::uint32_t PageValues::text(const std::string& value) {
  const auto [found, is_new] =
      text_ids_.try_emplace(value, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(value);
  return found->second;
}

}  // namespace backtrail::decoder
