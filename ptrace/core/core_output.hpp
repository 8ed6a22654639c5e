// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An output file that appears whole or not at all.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

class CoreOutput {
 public:
  /// Opens a temporary file beside `path`. Errors: kUnsupported if `path` exists and is not a plain
  /// file; else the errno.
  static Result<CoreOutput> create(const std::string& path, std::uint64_t max_bytes);
  /// Removes the file unless it was committed.
  ~CoreOutput();
  CoreOutput(CoreOutput&& other) noexcept;
  CoreOutput& operator=(CoreOutput&& other) = delete;

  /// Sets the function that is called when the disk is full. It frees space and returns true, or
  /// returns false. Empty if space cannot be freed.
  void set_make_room(std::function<bool()> make_room) { make_room_ = std::move(make_room); }
  /// Writes bytes; as many as fit if not all do. Errors: ENOSPC also if `max_bytes` is reached.
  Result<void> write(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Overwrites bytes written before; takes no new space.
  Result<void> overwrite(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Cuts the file to `length` bytes. `written` is how many of those were written, holes not
  /// counted.
  Result<void> cut(std::uint64_t length, std::uint64_t written);
  /// Makes the file, including holes, at least `bytes` long.
  Result<void> extend(std::uint64_t bytes);
  /// Renames the file to its final path.
  Result<void> commit();

  /// Returns the largest size that a file may have (RLIMIT_FSIZE).
  [[nodiscard]] static std::uint64_t longest();
  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  CoreOutput(std::string path, std::string temporary, UniqueFd fd, std::uint64_t max_bytes);

  std::string path_;
  std::string temporary_;  ///< Empty once the file has its final name.
  UniqueFd fd_;
  std::uint64_t max_bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t length_ = 0;
  std::function<bool()> make_room_;
};

/// Returns true if the error means that no more bytes can be written.
[[nodiscard]] bool is_out_of_space(const Error& error);

}  // namespace backtrail::tracee
