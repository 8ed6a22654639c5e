// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A file's contents as mapped memory.

#include <cstdint>
#include <span>
#include <string>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// A read-only private mapping. Writes to the file meanwhile may or may not show.
class MappedFile {
 public:
  /// Maps a file. Errors: the errno; kUnsupported if it is not a plain file. An empty file yields
  /// an empty span.
  static Result<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) = delete;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<std::uint8_t> bytes) : bytes_{bytes} {}

  std::span<std::uint8_t> bytes_;
};

}  // namespace backtrail::tracee
