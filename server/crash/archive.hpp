#pragma once
/// @file
/// Tar archives, compressed with zstd: files put in, and unpacked into a folder.

#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

#include "server/transport/explained.hpp"

struct archive;

namespace backtrail::server {

/// A part of a file that has contents.
struct DataPart {
  off_t begin = 0;
  off_t end = 0;
};

class ArchiveWriter {
 public:
  /// `path` gets its name when finish() has succeeded. Errors are sentences.
  static Explained<std::unique_ptr<ArchiveWriter>> create(const std::string& path);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  /// Holes stay holes. The error says which file.
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

/// Unpacks into an existing folder. Names that lead out of it are refused.
Explained<void> unpack_archive(const std::string& path, const std::string& folder);

/// It begins as a zstd file does.
[[nodiscard]] bool looks_like_archive(const std::string& path);

}  // namespace backtrail::server
