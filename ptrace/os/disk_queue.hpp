// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A first-in, first-out queue of bytes on disk.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// The file has no name, so no file remains, however the process ends. Space of bytes that
/// were taken out is returned to the file system.
class DiskQueue {
 public:
  /// Creates a queue in a folder. At most `most_bytes` bytes can wait. Errors: the errno of
  /// open(2).
  static Result<DiskQueue> create(const std::string& folder, std::uint64_t most_bytes);

  /// Appends all bytes or none. Errors: ENOSPC beyond `most_bytes` or on a full disk; the errno of
  /// write(2).
  Result<void> push(std::span<const std::uint8_t> bytes);
  /// Moves up to out.size() bytes to `out` and returns how many. Errors: the errno of read(2).
  Result<std::size_t> pop(std::span<std::uint8_t> out);
  [[nodiscard]] std::uint64_t waiting() const { return end_ - begin_; }

 private:
  DiskQueue(UniqueFd file, std::uint64_t most_bytes)
      : file_{std::move(file)}, most_bytes_{most_bytes} {}
  void give_back();

  UniqueFd file_;
  std::uint64_t most_bytes_;
  std::uint64_t begin_ = 0;  ///< Offset in the file of the oldest byte.
  std::uint64_t end_ = 0;
  std::uint64_t given_back_ = 0;
};

}  // namespace backtrail::tracee
