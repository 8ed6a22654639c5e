// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps histories of threads that have ended while their process continues. A test that failed in
/// a thread of its own is one of these when the process ends.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "ptrace/trace/ended_trace.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::server {

class EndedThreads {
 public:
  /// Maximum number of threads that are kept, of all processes together.
  static constexpr std::size_t kMost = 1024;
  /// Number of the newest ones that keep more of their histories.
  static constexpr std::size_t kLong = 64;
  /// Maximum size of the logs that the others keep, in bytes.
  static constexpr std::uint64_t kShortBytes = 64ULL << 10U;
  /// Minimum size of the logs that failed threads keep: 65,000 branches before the failure.
  static constexpr std::uint64_t kFailedBytes = 256ULL << 10U;

  /// @param most_bytes Limit on the histories of all failed threads together, and on those of all
  /// others together. One thread keeps at most a quarter of it as a log.
  explicit EndedThreads(std::uint64_t most_bytes) : most_bytes_{most_bytes} {}

  struct Ended {
    pid_t pid = 0;
    pid_t tid = 0;
    std::string name;
    std::unique_ptr<tracee::EndedTrace> trace;
    std::uint64_t bytes = 0;
    bool failed = false;
  };

  /// Call when the thread has panicked and may end because of it. Failed threads are kept longer,
  /// so that later ones, such as other tests, do not displace them.
  void note_failure(const tracee::Thread& thread);
  /// Takes the trace of a thread that is at its end. The thread must have one.
  void add(tracee::Thread& thread);
  /// Call when the process is gone or has executed another program.
  void forget(pid_t pid);
  /// Returns the process's ended threads, newest first. Valid until another method is called.
  [[nodiscard]] std::vector<Ended*> of(pid_t pid);
  [[nodiscard]] std::size_t size() const { return threads_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_[0] + bytes_[1]; }

 private:
  void shorten(Ended& ended, std::uint64_t bytes);
  void bound();
  /// Shortens the oldest histories, of failed threads or of the others, until the limit is met.
  void shorten_oldest(bool failed);
  /// Drops the oldest thread, of the failed ones or of the others. Returns false if there is none,
  /// or if only the newest is left and `even_last` is false.
  bool drop_oldest(bool failed, bool even_last);
  [[nodiscard]] bool exceeds(bool failed) const { return bytes_of(failed) > most_bytes_; }
  [[nodiscard]] std::uint64_t bytes_of(bool failed) const { return bytes_[failed ? 1 : 0]; }
  void count(const Ended& ended) { bytes_[ended.failed ? 1 : 0] += ended.bytes; }
  void discount(const Ended& ended) { bytes_[ended.failed ? 1 : 0] -= ended.bytes; }

  std::uint64_t most_bytes_;
  std::array<std::uint64_t, 2> bytes_{};  ///< Index 0: other threads; 1: failed ones.
  std::deque<Ended> threads_;             ///< Oldest first.
  std::set<tracee::ThreadId> failing_;    ///< Failed threads that are still alive.
};

}  // namespace backtrail::server
