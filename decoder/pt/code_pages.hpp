// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps copies of the code that other data was derived from, to detect changes.

#include <cstdint>
#include <map>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

/// Reads code by whole pages and keeps them.
class CodePages : public CodeReader {
 public:
  /// Borrows `code`.
  explicit CodePages(CodeReader& code) : code_{code} {}

  [[nodiscard]] arch::Isa isa() const override { return code_.isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;

  /// Reads all pages again. Returns true if none has changed; otherwise drops all pages.
  [[nodiscard]] bool unchanged();
  [[nodiscard]] std::size_t size() const { return pages_.size(); }

 private:
  /// Returns the readable part of the page at `base`.
  const std::vector<std::uint8_t>& page(TraceeAddr base);

  CodeReader& code_;
  std::map<TraceeAddr, std::vector<std::uint8_t>> pages_;
  TraceeAddr newest_base_{1};  ///< Initially an address where no page begins.
  const std::vector<std::uint8_t>* newest_ = nullptr;
};

}  // namespace backtrail::decoder
