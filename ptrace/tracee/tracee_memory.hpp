// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Interface to a traced program's memory.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// One address space. Raw: breakpoints are visible.
class TraceeMemory {
 public:
  virtual ~TraceeMemory() = default;
  /// Copies bytes to `out`; returns how many bytes from `address` were readable (0 = none).
  virtual std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) = 0;
  /// Writes all bytes, whatever the page protection. Errors: kUnreadable (detail = the address) if
  /// a byte is not mapped or cannot be written at all; kTraceeGone.
  virtual Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) = 0;
};

/// For code that only reads.
using MemoryReader = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;

}  // namespace backtrail::tracee
