// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A nameless file whose pieces can be added and removed in any order.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// New pieces reuse the space of removed ones, so the file is hardly longer than its contents.
/// Removing old pieces therefore helps against limits of a file's size (RLIMIT_FSIZE) and full
/// disks.
class SpoolFile {
 public:
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  /// Makes the file in `folder`; it vanishes with this object. Throws std::runtime_error.
  explicit SpoolFile(const std::string& folder);

  /// Adds a piece. Error: the errno of write(2); the file's contents then remain as they were.
  Result<Piece> put(std::span<const std::uint8_t> bytes);
  /// Reads a piece. Error: the errno of read(2); ENODATA if the file has become shorter.
  Result<std::vector<std::uint8_t>> get(const Piece& piece) const;
  /// Removes a piece. Its space is returned to the file system if possible, and reused for later
  /// pieces.
  void take_out(const Piece& piece);

  /// Disk space of the pieces, in whole pages.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Returns the disk space of a piece of `bytes` bytes.
  [[nodiscard]] static std::uint64_t room_for(std::uint64_t bytes);
  /// Returns how many bytes other processes can still write to the file system; ~0 if unknown.
  [[nodiscard]] std::uint64_t free_on_disk() const;

 private:
  std::uint64_t take_room(std::uint64_t bytes);
  void give_room_back(std::uint64_t offset, std::uint64_t bytes);

  tracee::UniqueFd fd_;
  std::uint64_t end_ = 0;
  std::uint64_t held_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< Sizes of free ranges by offset; no two are
                                                 ///< adjacent.
};

}  // namespace backtrail::server
