#pragma once
/// @file
/// Child processes of tests: text in, text out, deadlines, and nothing left behind.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace backtrail::test {

using Deadline = std::chrono::steady_clock::time_point;

[[nodiscard]] inline Deadline deadline_in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

/// Text that arrives on a file descriptor, kept from the first byte on.
class TextStream {
 public:
  TextStream() = default;
  /// Takes the descriptor, which must be readable; it becomes non-blocking.
  explicit TextStream(int fd);
  ~TextStream();
  TextStream(TextStream&& other) noexcept;
  TextStream& operator=(TextStream&& other) noexcept;

  /// Everything so far.
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool at_end() const { return fd_ < 0; }
  [[nodiscard]] int fd() const { return fd_; }

  /// Reads on until `needle` stands in the text at or behind `from`; returns where. nullopt at the
  /// deadline, or at the end of the stream.
  std::optional<std::size_t> find(std::string_view needle, std::size_t from, Deadline deadline);

  /// Takes what is there, without waiting.
  void drain();

 private:
  std::string text_;
  int fd_ = -1;
};

/// How to start a child.
struct SpawnOptions {
  std::vector<std::string> arguments;    ///< arguments[0] is looked up in PATH.
  std::vector<std::string> environment;  ///< "NAME=VALUE", the whole of it; see test_environment().
  std::string working_directory;         ///< Empty: ours.
};

/// A small fixed environment, the same wherever tests run.
[[nodiscard]] std::vector<std::string> test_environment();

/// A child with a pipe to its stdin and one from its stdout and stderr together. The destructor
/// kills it with its process group.
class Subprocess {
 public:
  explicit Subprocess(const SpawnOptions& options);
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] TextStream& output() { return output_; }

  /// Writes to the child's stdin; a child that is gone is no error.
  void write(std::string_view text);
  void close_input();
  void signal(int number) const;

  /// The wait status once the child has ended; nullopt at the deadline. Reads output meanwhile.
  std::optional<int> wait(Deadline deadline);

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  TextStream output_;
  std::optional<int> status_;
};

/// Makes this process adopt orphaned descendants, so that kill_descendants() finds all of them.
void adopt_orphans();
/// Kills and reaps every descendant of this process, traced ones too. Bounded in time.
/// @return The number of processes that were still alive.
int kill_descendants();
/// Descendants of this process that are alive (not zombies).
[[nodiscard]] std::vector<pid_t> live_descendants();

}  // namespace backtrail::test
