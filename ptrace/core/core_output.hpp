#pragma once
/// @file
/// A file that is there whole or not at all.

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
  /// Opens a new file beside `path`. Plain errno.
  static Result<CoreOutput> create(const std::string& path, std::uint64_t max_bytes);
  /// Removes what was not committed.
  ~CoreOutput();
  CoreOutput(CoreOutput&& other) noexcept;
  CoreOutput& operator=(CoreOutput&& other) = delete;

  /// Called when the disk is full: frees some of it, or returns false. Empty: nobody can.
  void set_make_room(std::function<bool()> make_room) { make_room_ = std::move(make_room); }
  /// Error ENOSPC also when the bytes allowed are used up. As many bytes as fit are written then.
  Result<void> write(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Over bytes that were written before: takes no new space.
  Result<void> overwrite(std::uint64_t offset, std::span<const std::uint8_t> bytes);
  /// Takes back everything behind `length`; of what remains `written` bytes were written.
  Result<void> cut(std::uint64_t length, std::uint64_t written);
  /// The file's length, holes counted, is at least that.
  Result<void> extend(std::uint64_t bytes);
  /// Gives the file its name.
  Result<void> commit();

  /// No file may be longer (RLIMIT_FSIZE).
  [[nodiscard]] static std::uint64_t longest();
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
  std::function<bool()> make_room_;
};

/// The error says that there is no room for more.
[[nodiscard]] bool is_out_of_space(const Error& error);

}  // namespace backtrail::tracee
