// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory in which threads record values (TranslateOptions::records_values).

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::tracee {
class RemoteCalls;
class Thread;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Memory for values, up to a guard page.
struct ValueRange {
  std::uint64_t* host = nullptr;  ///< The server's address of it.
  TraceeAddr begin;
  TraceeAddr end;

  /// Returns the values from `from` to `to`; empty if these are not in the range.
  [[nodiscard]] std::span<std::uint64_t> between(TraceeAddr from, TraceeAddr to) const;
  [[nodiscard]] std::span<std::uint64_t> all() const { return between(begin, end); }
};

/// A thread fills two ranges in turn: the values in the one stay while it fills the other. Larger
/// ranges would not stay in a CPU's cache, and smaller ones would stop the thread too often.
using ValueRanges = std::array<ValueRange, 2>;

/// One memfd for each thread part that records values, mapped in the program and in the server. As
/// with the memory of translated code, children inherit none, and no core file contains any.
class ValueLogs {
 public:
  static constexpr std::uint64_t kRangeSpan = 1ULL << 20;
  static constexpr std::uint64_t kSpan = 2 * kRangeSpan;

  ValueLogs() = default;
  ~ValueLogs();
  ValueLogs(const ValueLogs&) = delete;
  ValueLogs& operator=(const ValueLogs&) = delete;

  /// Maps memory for a thread part, once. Errors: kTraceeGone; the errnos of the calls.
  Result<void> prepare(Thread& thread, std::size_t part);
  /// Returns the memory of a part; it must have been prepared.
  [[nodiscard]] ValueRanges ranges(std::size_t part) const;
  /// Returns the size of all mappings in the program.
  [[nodiscard]] std::uint64_t mapped_bytes() const { return mappings_.size() * kSpan; }
  [[nodiscard]] bool has_mapped(TraceeAddr address) const;
  /// Unmaps everything from the program.
  Result<void> remove(RemoteCalls& remote) const;

 private:
  struct Mapping {
    void* host = nullptr;
    TraceeAddr base;
  };
  std::map<std::size_t, Mapping> mappings_;  ///< By thread part.
};

}  // namespace backtrail::tracee::cache
