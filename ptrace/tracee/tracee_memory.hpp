#pragma once
/// @file
/// A traced program's memory, as those see it who only read and write it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// One address space. Raw: breakpoints in it show.
class TraceeMemory {
 public:
  virtual ~TraceeMemory() = default;
  /// Copies bytes to `out`; returns how many from `address` on were readable (0 = none).
  virtual std::size_t read(TraceeAddr address, std::span<std::uint8_t> out) = 0;
  /// All of it, whatever the pages' protection, or an error: kUnreadable (detail = the address)
  /// when something is not mapped or not writable at all; kTraceeGone.
  virtual Result<void> write(TraceeAddr address, std::span<const std::uint8_t> data) = 0;
};

/// For users that only read.
using MemoryReader = std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)>;

}  // namespace backtrail::tracee
