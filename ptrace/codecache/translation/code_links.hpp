// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Jumps in translated code whose targets can be changed while the program runs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Reads and changes the 32-bit displacements ("rel32") of jumps in translated code.
///
/// A link is named by the offset of its four bytes from the beginning of the code. The translator
/// places each link within one cache line, so the program sees either the old displacement or the
/// new one.
class CodeLinks {
 public:
  /// Bytes of one link.
  static constexpr std::size_t kBytes = sizeof(std::uint32_t);

  /// `host` is the server's mapping of all of the code, borrowed. The program has its first byte at
  /// `address`.
  CodeLinks(std::span<std::uint8_t> host, TraceeAddr address) : host_{host}, address_{address} {}

  /// Returns the address of a code offset in the program.
  [[nodiscard]] TraceeAddr address_of(std::uint64_t offset) const { return address_ + offset; }
  /// Returns the code offset of an address in the code.
  [[nodiscard]] std::uint64_t offset_of(TraceeAddr address) const { return address - address_; }

  /// Returns the displacement that makes a link lead to `target`, which must be less than 2 GiB
  /// away.
  [[nodiscard]] std::uint32_t distance_to(std::uint64_t link, TraceeAddr target) const;
  /// Returns the code offset that a link leads to.
  [[nodiscard]] std::uint64_t target_of(std::uint64_t link) const;
  /// Makes a link lead to `target`.
  void point(std::uint64_t link, TraceeAddr target);

  /// Returns the four bytes at a code offset, lowest byte first.
  [[nodiscard]] std::uint32_t load(std::uint64_t offset) const;
  /// Writes four bytes that lie within one cache line, by a single store.
  void store(std::uint64_t offset, std::uint32_t value);

  /// Notes from now on which places before `end` are written.
  void note_changes_before(std::uint64_t end) { noted_end_ = end; }
  /// Returns the places written, some of them more than once; nullopt if there were more than
  /// kMostChanges.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> changes() const;

  static constexpr std::size_t kMostChanges = 1U << 16U;

 private:
  std::span<std::uint8_t> host_;
  TraceeAddr address_;
  std::uint64_t noted_end_ = 0;
  std::vector<std::uint32_t> changes_;  ///< At most one more than kMostChanges.
};

}  // namespace backtrail::tracee::cache
