// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Variables at the newest lines of a thread, for the page.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "decoder/export/call_names.hpp"
#include "decoder/export/page_data.hpp"
#include "decoder/export/thread_lanes.hpp"
#include "decoder/report/value_source.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Most lines with variables. Each adds some 50 bytes to the page, and takes up to a millisecond.
inline constexpr std::size_t kMostValueLines = 2'000;

/// Reads variables where the page's cursor may stand: at each line of each block, before the line
/// runs; at the end of the trace, where the thread was stopped within the line.
class PageValues {
 public:
  /// Borrows everything. Names of functions are added to `names`.
  PageValues(ValueSource& values, Symbols& symbols, PageCode& code, CallNames& names)
      : values_{values}, symbols_{symbols}, code_{code}, names_{names} {}

  /// Reads the newest lines of code that has debug information, run-time libraries left out.
  /// @param blocks  The block before each record, and the one before the end.
  void read(const ThreadLane& lane, std::span<const std::uint32_t> blocks);
  /// A variable: the number of its function's name, its name and its type.
  using Key = std::tuple<std::uint32_t, std::string, std::string>;
  [[nodiscard]] const std::vector<Key>& variables() const { return variables_; }
  /// Texts of values. The first one stands for unknown values.
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }
  /// Places, the newest first: the block's position from 1 on, the line's index in it, then pairs
  /// of a variable's number and its text's number.
  [[nodiscard]] const std::vector<std::vector<std::uint64_t>>& places() const { return places_; }

 private:
  /// Returns the lines of a block; those without variables have the address 0.
  const std::vector<PageCode::LineBegin>& shown_lines(std::uint32_t block);
  /// Adds the variables of the functions at `pc` to a place.
  void add(TraceeAddr pc, FrameState& state, std::vector<std::uint64_t>& place);
  std::uint32_t variable(std::uint32_t function, const Variable& variable);
  std::uint32_t text(const std::string& value);

  ValueSource& values_;
  Symbols& symbols_;
  PageCode& code_;
  CallNames& names_;
  std::map<std::uint32_t, std::vector<PageCode::LineBegin>> lines_;  ///< By block.
  std::map<Key, std::uint32_t> variable_ids_;
  std::vector<Key> variables_;
  std::map<std::string, std::uint32_t> text_ids_;
  std::vector<std::string> texts_{{}};
  std::vector<std::vector<std::uint64_t>> places_;
};

}  // namespace backtrail::decoder
