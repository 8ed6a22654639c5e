#pragma once
/// @file
/// Histories of threads that have ended while their process goes on: a test that failed in a thread
/// of its own is one of them by the time the process ends.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "ptrace/trace/ended_trace.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::server {

class EndedThreads {
 public:
  /// The newest threads that are kept, of all processes together.
  static constexpr std::size_t kMost = 1024;
  /// The newest ones of these keep more of their histories.
  static constexpr std::size_t kLong = 64;
  /// What the others keep of their logs at most.
  static constexpr std::uint64_t kShortBytes = 64ULL << 10U;

  /// @param most_bytes  Of all histories together. One thread keeps at most a quarter of it.
  explicit EndedThreads(std::uint64_t most_bytes) : most_bytes_{most_bytes} {}

  struct Ended {
    pid_t pid = 0;
    pid_t tid = 0;
    std::string name;
    std::unique_ptr<tracee::EndedTrace> trace;
    std::uint64_t bytes = 0;
  };

  /// The thread, which has a trace, is at its end; it gives the trace away.
  void add(tracee::Thread& thread);
  /// The process is gone, or has become another program.
  void forget(pid_t pid);
  /// Those of the process, the newest first. Valid until the next call of another method.
  [[nodiscard]] std::vector<Ended*> of(pid_t pid);
  [[nodiscard]] std::size_t size() const { return threads_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void shorten(Ended& ended, std::uint64_t bytes);
  void drop_oldest();

  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::deque<Ended> threads_;  ///< Oldest first.
};

}  // namespace backtrail::server
