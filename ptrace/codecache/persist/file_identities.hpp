// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Recognises files by their code, so that translations made in one container are found in another,
/// where inodes and times are different.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ptrace/os/file_facts.hpp"

namespace backtrail::tracee::cache {

/// Computes identities of files: checksums of their sizes, headers (which hold the build-id) and
/// executable segments. Files that are not ELF files count whole. Files with more than 64 MiB of
/// that are identified by what stat(2) tells.
///
/// Reading a library takes some tenths of a millisecond, so identities are remembered by what
/// stat(2) tells, also in a note in the persistent cache's folder.
class FileIdentities {
 public:
  /// `note` may be empty: nothing is remembered beyond this object then.
  explicit FileIdentities(std::filesystem::path note) : note_{std::move(note)} {}

  /// Returns the identity of an open file; nullopt if it cannot be read. `may_read_note`: the
  /// note's folder is private.
  std::optional<std::uint64_t> of(int fd, const struct stat& facts, bool may_read_note);
  /// Notes that the identity of a file that of() knows covers these bytes (identity_covers()).
  void note_covered(const struct stat& facts, std::uint64_t offset, std::uint64_t bytes);
  /// Returns the identity of a file if it is known, and known to cover these bytes: the file need
  /// not be opened.
  [[nodiscard]] std::optional<std::uint64_t> known(const struct stat& facts, std::uint64_t offset,
                                                   std::uint64_t bytes) const;
  /// Returns true if there are identities that the note does not have.
  [[nodiscard]] bool has_news() const { return has_news_; }
  /// Writes the note.
  void save();

 private:
  void read();

  std::filesystem::path note_;
  bool note_read_ = false;
  bool has_news_ = false;
  struct Known {
    std::uint64_t identity = 0;
    bool asked = false;  ///< By this object's user, so the file exists.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> covered = {};  ///< Offsets and bytes.
  };
  std::map<FileFacts, Known> known_;
};

/// Returns true if the identity of the file depends on its `bytes` bytes from `offset` on. Both are
/// those of a mapping: whole pages.
[[nodiscard]] bool identity_covers(int fd, std::uint64_t size, std::uint64_t offset,
                                   std::uint64_t bytes);

}  // namespace backtrail::tracee::cache
