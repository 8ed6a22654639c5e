#pragma once
/// @file
/// A stopped process's memory, read while somebody writes what was read before.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <vector>

#include "ptrace/os/remote_read.hpp"

namespace backtrail::tracee {

class ReadAhead {
 public:
  /// No part may be larger.
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20U;

  /// Parts, one behind the other. What could not be read is zero.
  struct Batch {
    std::size_t first = 0;  ///< Index of the first part.
    std::size_t count = 0;
    std::vector<std::uint8_t> bytes;
    std::uint64_t unreadable_bytes = 0;
  };
  /// Reads parts, one behind the other, and returns how many bytes could not be read. Called from
  /// another thread, but never twice at a time.
  using Fill = std::function<std::uint64_t(std::span<const MemoryPart>, std::span<std::uint8_t>)>;

  ReadAhead(std::vector<MemoryPart> parts, Fill fill);

  /// In the parts' order; good until the next call. Null: that was all.
  [[nodiscard]] const Batch* next();
  [[nodiscard]] const MemoryPart& part(std::size_t index) const { return parts_[index]; }

 private:
  /// Parts that are next, as many as fit.
  [[nodiscard]] std::span<const MemoryPart> take_parts();
  [[nodiscard]] Batch read(std::size_t first, std::span<const MemoryPart> parts,
                           std::vector<std::uint8_t> memory) const;

  std::vector<MemoryPart> parts_;
  Fill fill_;
  std::size_t taken_ = 0;
  Batch current_;
  std::vector<std::uint8_t> spare_;
  std::future<Batch> coming_;  ///< Last: its end waits for who uses the others.
};

}  // namespace backtrail::tracee
