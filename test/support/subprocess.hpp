// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Child processes of tests: text input and output, deadlines, and no leftovers.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::test {

using Deadline = std::chrono::steady_clock::time_point;

/// How much longer than on an idle machine everything may take on a busy or slow one.
inline constexpr int kSlowest = 4;

/// @param time  Ample on an idle machine.
[[nodiscard]] inline Deadline deadline_in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + kSlowest * time;
}

/// Text from a file descriptor, kept from the first byte on.
class TextStream {
 public:
  TextStream() = default;
  /// Takes ownership of the descriptor, which must be readable, and makes it non-blocking.
  explicit TextStream(int fd);
  ~TextStream();
  TextStream(TextStream&& other) noexcept;
  TextStream& operator=(TextStream&& other) noexcept;

  /// Returns everything read so far.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool at_end() const { return fd_ < 0; }
  [[nodiscard]] int fd() const { return fd_; }

  /// Reads until `needle` is in the text at or after `from`. Returns its position; nullopt at the
  /// deadline or the end of the stream.
  std::optional<std::size_t> find(std::string_view needle, std::size_t from, Deadline deadline);

  /// Reads what is available, without waiting.
  void drain();

 private:
  std::string text_;
  int fd_ = -1;
};

/// Options for starting a child.
struct SpawnOptions {
  std::vector<std::string> arguments;  ///< arguments[0] is looked up in PATH.
  /// The complete environment, "NAME=VALUE"; see test_environment().
  std::vector<std::string> environment;
  std::string working_directory;  ///< Empty for the current one.
};

/// Returns a small fixed environment, equal wherever tests run.
[[nodiscard]] std::vector<std::string> test_environment();

/// A child with a pipe to its stdin, and one from its stdout and stderr together. The destructor
/// kills its process group.
class Subprocess {
 public:
  explicit Subprocess(const SpawnOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] TextStream& output() { return output_; }

  /// Writes to the child's stdin. It is no error if the child has ended.
  void write(std::string_view text);
  void close_input();
  void signal(int number) const;

  /// Waits for the child's end while reading its output. Returns the wait status; nullopt at the
  /// deadline.
  std::optional<int> wait(Deadline deadline);

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  TextStream output_;
  std::optional<int> status_;
};

/// Makes this process the parent of orphaned descendants, so that kill_descendants() finds all of
/// them.
void adopt_orphans();
/// Kills and reaps every descendant of this process, including traced ones. Bounded in time.
/// @return The number of processes that were still alive.
int kill_descendants();
/// Returns the living descendants of this process, without zombies.
[[nodiscard]] std::vector<pid_t> live_descendants();

}  // namespace backtrail::test
