// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A code reader for several threads, which read one at a time.

#include <mutex>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

class LockedCode : public CodeReader {
 public:
  /// Borrows `code`.
  explicit LockedCode(CodeReader& code) : code_{code} {}

  [[nodiscard]] arch::Isa isa() const override { return code_.isa(); }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    const std::lock_guard lock{mutex_};
    return code_.read_code(address, out);
  }

 private:
  CodeReader& code_;
  std::mutex mutex_;
};

}  // namespace backtrail::decoder
