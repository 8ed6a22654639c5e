#pragma once
/// @file
/// A file that is there whole or not at all.

#include <cstdint>
#include <span>
#include <string>

#include "arch/base/result.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

class CoreOutput {
 public:
  /// Opens a new file beside `path`. Plain errno.
  static Result<CoreOutput> create(const std::string& path, std::uint64_t max_bytes);
  /// Removes what was not committed.
  ~CoreOutput();
  CoreOutput(CoreOutput&& other) noexcept;
  CoreOutput& operator=(CoreOutput&& other) = delete;

  /// Error ENOSPC also when the bytes allowed are used up.
  Result<void> write(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Over bytes that were written before: takes no new space.
  Result<void> overwrite(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// The file's length, holes counted, is at least that.
  Result<void> extend(std::uint64_t bytes);
  /// Gives the file its name.
  Result<void> commit();

  [[nodiscard]] std::uint64_t length() const { return length_; }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  CoreOutput(std::string path, std::string temporary, UniqueFd fd, std::uint64_t max_bytes);

  std::string path_;
  std::string temporary_;  ///< Empty once the file has its name.
  UniqueFd fd_;
  std::uint64_t max_bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t length_ = 0;
};

/// The error says that there is no room for more.
[[nodiscard]] bool is_out_of_space(const Error& error);

}  // namespace backtrail::tracee
