// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A code reader for a few bytes at one address.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::test {

class FlatCode : public decoder::CodeReader {
 public:
  FlatCode(TraceeAddr base, std::vector<std::uint8_t> bytes, arch::Isa isa = arch::Isa::kAmd64)
      : base_{base}, bytes_{std::move(bytes)}, isa_{isa} {}

  [[nodiscard]] arch::Isa isa() const override { return isa_; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    ++reads_;
    if (address < base_ || address - base_ >= bytes_.size()) return 0;
    const auto rest = std::span{bytes_}.subspan(address - base_);
    const std::size_t count = std::min(rest.size(), out.size());
    std::copy_n(rest.begin(), count, out.begin());
    return count;
  }

  [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }
  [[nodiscard]] int reads() const { return reads_; }

 private:
  TraceeAddr base_;
  std::vector<std::uint8_t> bytes_;
  arch::Isa isa_;
  int reads_ = 0;
};

}  // namespace backtrail::test
