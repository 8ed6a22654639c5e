#pragma once
/// @file
/// A file without a name whose pieces come and go in any order.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {

/// Pieces are put where others were taken out, so the file is never much longer than what it holds:
/// limits of a file's size (RLIMIT_FSIZE) and full disks are met by taking old pieces out.
class SpoolFile {
 public:
  struct Piece {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  /// In that folder; it is gone when this is. Throws std::runtime_error.
  explicit SpoolFile(const std::string& folder);

  /// Error: the errno of write(2); the file holds what it held before.
  Result<Piece> put(std::span<const std::uint8_t> bytes);
  /// Error: the errno of read(2); ENODATA where the file has become shorter.
  Result<std::vector<std::uint8_t>> get(const Piece& piece) const;
  /// Its room is the file system's again, where that takes it back, and that of the next pieces.
  void take_out(const Piece& piece);

  /// What the pieces take on disk: whole pages.
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// What a piece of so many bytes takes on disk.
  [[nodiscard]] static std::uint64_t room_for(std::uint64_t bytes);
  /// Bytes that others can still write to the file system; ~0 where it does not say.
  [[nodiscard]] std::uint64_t free_on_disk() const;

 private:
  std::uint64_t take_room(std::uint64_t bytes);
  void give_room_back(std::uint64_t offset, std::uint64_t bytes);

  tracee::UniqueFd fd_;
  std::uint64_t end_ = 0;
  std::uint64_t held_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  ///< Sizes by offset; no two touch.
};

}  // namespace backtrail::server
