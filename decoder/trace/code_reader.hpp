// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Gives decoders access to the program's code, live or recorded.

#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

class CodeReader {
 public:
  virtual ~CodeReader() = default;
  [[nodiscard]] virtual arch::Isa isa() const = 0;
  /// Copies code as the program wrote it, without a debugger's breakpoints, to `out`. Returns the
  /// number of bytes read from `address` on; fewer than out.size() where readable memory ends.
  virtual std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) = 0;
};

}  // namespace backtrail::decoder
