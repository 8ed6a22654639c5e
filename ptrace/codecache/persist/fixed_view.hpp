// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A mapped file whose bytes stay as they are, whatever others do to the file.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee::cache {

/// Takes a lease (fcntl(2), F_SETLEASE) on the file, so that nobody can write or shorten it unless
/// this process lets them: the handler of a signal copies the bytes to private memory first, in
/// place of the mapping. Where there are no leases, or somebody has the file open for writing, the
/// bytes are copied at once, which takes longer than all of a short program. Sealed memory files
/// need neither.
class FixedView {
 public:
  /// The file must be a regular one, open for reading alone or sealed.
  explicit FixedView(UniqueFd file);
  ~FixedView();
  FixedView(const FixedView&) = delete;
  FixedView& operator=(const FixedView&) = delete;

  /// Facts of the file while it could not be written.
  [[nodiscard]] const struct stat& facts() const { return facts_; }
  /// Maps the file; call once. `read_soon`: all of it will be read. Returns false if that is
  /// impossible, or the file is empty.
  bool map(bool read_soon);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  /// Returns true if the bytes are those of the file with facts().
  [[nodiscard]] bool is_as_it_was() const;

  /// Most files with a lease; each needs a descriptor.
  static constexpr std::size_t kMostLeases = 128;

 private:
  bool take_lease();

  UniqueFd file_;
  struct stat facts_ {};
  std::optional<std::size_t> lease_;  ///< Its number; nullopt: none.
  bool sealed_ = false;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace backtrail::tracee::cache
