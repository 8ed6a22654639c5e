// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tar archives compressed with zstd.

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "server/transport/explained.hpp"

struct archive;

namespace backtrail::server {

/// Part of a file that has data, in bytes from the file's start.
struct DataPart {
  off_t begin = 0;
  off_t end = 0;
};

class ArchiveWriter {
 public:
  /// Creates an archive. The file appears at `path` when finish() has succeeded. Errors are
  /// sentences.
  static Explained<std::unique_ptr<ArchiveWriter>> create(const std::string& path);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  /// Adds a file; holes stay holes. The error names the file.
  Explained<void> add(const std::string& name, const std::string& file);
  Explained<void> finish();
  [[nodiscard]] std::uint64_t files() const { return files_; }

 private:
  ArchiveWriter(std::string path, std::string temporary);
  [[nodiscard]] std::string problem() const;
  Explained<void> copy(const std::string& file, int fd, DataPart part);
  Explained<void> skip(off_t bytes);

  std::string path_;
  std::string temporary_;
  archive* archive_;
  std::uint64_t files_ = 0;
};

/// Unpacks into an existing folder. Refuses names that lead out of it.
Explained<void> unpack_archive(const std::string& path, const std::string& folder);

/// Returns true if the file starts like a zstd file.
[[nodiscard]] bool looks_like_archive(const std::string& path);

}  // namespace backtrail::server
