// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An array that grows without moving its elements or reserving memory for more than a chunk.

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "arch/base/check.hpp"

namespace backtrail {

template <typename T>
class ChunkedArray {
 public:
  /// Most elements in one piece.
  static constexpr std::size_t kChunk = std::bit_floor((std::size_t{64} << 10U) / sizeof(T));

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] T& operator[](std::size_t index) { return chunks_[index / kChunk][index % kChunk]; }
  [[nodiscard]] const T& operator[](std::size_t index) const {
    return chunks_[index / kChunk][index % kChunk];
  }
  void push_back(const T& value) {
    if (size_ % kChunk == 0) chunks_.emplace_back().reserve(kChunk);
    chunks_.back().push_back(value);
    ++size_;
  }
  /// Appends `values` in one piece, after empty elements if the chunk lacks room. Returns the index
  /// of the first. values.size() must be at most kChunk.
  std::size_t append(std::span<const T> values) {
    BT_CHECK(values.size() <= kChunk);
    if (size_ % kChunk + values.size() > kChunk) {
      chunks_.back().resize(kChunk);
      size_ = chunks_.size() * kChunk;
    }
    if (size_ % kChunk == 0 && !values.empty()) chunks_.emplace_back().reserve(kChunk);
    const std::size_t first = size_;
    if (!values.empty()) chunks_.back().insert(chunks_.back().end(), values.begin(), values.end());
    size_ += values.size();
    return first;
  }
  /// Returns elements that were appended in one piece.
  [[nodiscard]] std::span<const T> piece(std::size_t first, std::size_t count) const {
    if (count == 0) return {};
    return std::span{chunks_[first / kChunk]}.subspan(first % kChunk, count);
  }
  /// Returns all elements, in order.
  [[nodiscard]] std::vector<std::span<const T>> pieces() const {
    return {chunks_.begin(), chunks_.end()};
  }
  void clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  std::vector<std::vector<T>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace backtrail
