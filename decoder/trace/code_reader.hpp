#pragma once
/// @file
/// How decoders see the traced program's code, alive or recorded.

#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

class CodeReader {
 public:
  virtual ~CodeReader() = default;
  [[nodiscard]] virtual arch::Isa isa() const = 0;
  /// Copies code as the program wrote it (no breakpoints of a debugger in it) to `out`. Returns how
  /// many bytes from `address` on could be read; fewer than asked where memory ends.
  virtual std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) = 0;
};

}  // namespace backtrail::decoder
