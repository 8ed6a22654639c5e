// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Owner of a file descriptor.

namespace backtrail::tracee {

/// Owns one file descriptor and closes it once. Move-only; -1 means none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) noexcept : fd_{fd} {}
  UniqueFd(UniqueFd&& other) noexcept : fd_{other.release()} {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool valid() const noexcept { return fd_ >= 0; }
  explicit operator bool() const noexcept { return valid(); }

  /// Hands the descriptor over to the caller, who must close it.
  [[nodiscard]] int release() noexcept;
  /// Closes the owned descriptor, then owns `fd`. Preserves errno.
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace backtrail::tracee
