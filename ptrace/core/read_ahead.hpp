// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads a stopped process's memory while the caller writes the previous batch.

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
  /// Size of a batch in bytes. A part may not be larger.
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20U;

  /// Consecutive parts. Unreadable bytes are zero.
  struct Batch {
    std::size_t first = 0;  ///< Index of the first part.
    std::size_t count = 0;
    std::vector<std::uint8_t> bytes;
    std::uint64_t unreadable_bytes = 0;
  };
  /// Reads the given parts one after the other and returns how many bytes could not be read. Called
  /// from another thread, but never twice at a time.
  using Fill = std::function<std::uint64_t(std::span<const MemoryPart>, std::span<std::uint8_t>)>;

  ReadAhead(std::vector<MemoryPart> parts, Fill fill);

  /// Returns the next batch in the parts' order, valid until the next call; null after the last
  /// one.
  [[nodiscard]] const Batch* next();
  [[nodiscard]] const MemoryPart& part(std::size_t index) const { return parts_[index]; }

 private:
  /// Returns the next parts, as many as fit in a batch.
  [[nodiscard]] std::span<const MemoryPart> take_parts();
  [[nodiscard]] Batch read(std::size_t first, std::span<const MemoryPart> parts,
                           std::vector<std::uint8_t> memory) const;

  std::vector<MemoryPart> parts_;
  Fill fill_;
  std::size_t taken_ = 0;
  Batch current_;
  std::vector<std::uint8_t> spare_;
  std::future<Batch> coming_;  ///< Declared last: its destructor waits for the thread that uses the
                               ///< other members.
};

}  // namespace backtrail::tracee
