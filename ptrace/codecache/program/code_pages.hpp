// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Caches the program's code pages, because reading another process costs more than decoding.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>

#include "arch/base/address.hpp"
#include "arch/base/page.hpp"

namespace backtrail::tracee::cache {

class CodePages {
 public:
  using Reader = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;
  explicit CodePages(Reader reader) : reader_{std::move(reader)} {}

  std::size_t read(TraceeAddr at, std::span<std::uint8_t> out);
  /// Returns the bytes from an address to the end of its page; valid until the next call of any
  /// other function.
  [[nodiscard]] std::span<const std::uint8_t> view(TraceeAddr at);
  /// Call when code may have changed: drops all pages.
  void forget() {
    pages_.clear();
    last_ = nullptr;
  }
  /// Call when code at `at` may have changed: drops its page and the next one.
  void forget(TraceeAddr at);

 private:
  struct Page {
    std::array<std::uint8_t, kPageBytes> bytes{};
    std::size_t readable = 0;
  };
  Reader reader_;
  const Page& page_at(std::uint64_t start);

  std::unordered_map<std::uint64_t, Page> pages_;
  const Page* last_ = nullptr;  ///< The page last read, because instructions are read one by one.
  std::uint64_t last_start_ = 0;
};

}  // namespace backtrail::tracee::cache
