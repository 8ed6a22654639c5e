#pragma once
/// @file
/// A file's bytes, mapped.

#include <cstdint>
#include <span>
#include <string>

#include "arch/base/result.hpp"

namespace backtrail::tracee {

/// Read-only and private: what somebody writes to the file meanwhile may show or not.
class MappedFile {
 public:
  /// Plain errno; kUnsupported: no plain file. An empty file has no bytes.
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
