// SPDX-License-Identifier: Apache-2.0
#include "decoder/cachelog/value_stream.hpp"

#include <algorithm>

#include "arch/base/log.hpp"

namespace backtrail::decoder {

void ValueStream::hold(std::span<const std::uint64_t> values) {
  if (values.empty()) return;
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    const bool goes_on =
        last.copied.empty() && last.values.data() + last.values.size() == values.data();
    if (goes_on) {
      last.values = {last.values.data(), last.values.size() + values.size()};
      end_ += values.size();
      return;
    }
  }
  pieces_.push_back({.first = end_, .values = values, .copied = {}});
  end_ += values.size();
}

void ValueStream::drop_before(std::uint64_t number) {
  while (!pieces_.empty() && pieces_.front().first + pieces_.front().values.size() <= number) {
    pieces_.pop_front();
  }
  if (pieces_.empty() || pieces_.front().first >= number) return;
  Piece& oldest = pieces_.front();
  oldest.values = oldest.values.subspan(number - oldest.first);
  oldest.first = number;
}

void ValueStream::forget(std::span<const std::uint64_t> memory) {
  for (auto piece = pieces_.rbegin(); piece != pieces_.rend(); ++piece) {
    const bool is_there = piece->copied.empty() &&
                          piece->values.data() < memory.data() + memory.size() &&
                          memory.data() < piece->values.data() + piece->values.size();
    if (is_there) return drop_before(piece->first + piece->values.size());
  }
}

void ValueStream::own(std::uint64_t most) {
  drop_before(end_ - std::min(end_, most));
  for (Piece& piece : pieces_) {
    if (!piece.copied.empty()) continue;
    piece.copied = {piece.values.begin(), piece.values.end()};
    piece.values = piece.copied;
  }
}

std::optional<std::uint64_t> ValueStream::at(std::uint64_t number) const {
  const auto after =
      std::partition_point(pieces_.begin(), pieces_.end(),
                           [number](const Piece& piece) { return piece.first <= number; });
  if (after == pieces_.begin()) return std::nullopt;
  const Piece& piece = *std::prev(after);
  const std::uint64_t index = number - piece.first;
  return index < piece.values.size() ? std::optional{piece.values[index]} : std::nullopt;
}

void ValueStream::add_anchor(std::uint64_t entries, std::uint64_t left, std::uint64_t oldest) {
  for (; !anchors_.empty() && anchors_.front().entries < oldest; anchors_.pop_front()) {
    before_ = anchors_.front();
  }
  anchors_.push_back({entries, end_ - std::min(end_, left), end_});
}

void ValueStream::note_mismatch(const Anchor& anchor, std::uint64_t begin,
                                std::uint64_t counted) const {
  log::decoder().debug("op=align_values entries {} to {} stand for {} values, up to number {}",
                       begin, anchor.entries, counted, anchor.values);
}

}  // namespace backtrail::decoder
