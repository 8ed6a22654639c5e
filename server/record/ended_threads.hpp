#pragma once
/// @file
/// Histories of threads that have ended while their process goes on: a test that failed in a thread
/// of its own is one of them by the time the process ends.

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
  /// The newest threads that are kept, of all processes together.
  static constexpr std::size_t kMost = 1024;
  /// The newest ones of these keep more of their histories.
  static constexpr std::size_t kLong = 64;
  /// What the others keep of their logs at most.
  static constexpr std::uint64_t kShortBytes = 64ULL << 10U;
  /// What those that failed keep at least, as a log; 65,000 branches before the failure.
  static constexpr std::uint64_t kFailedBytes = 256ULL << 10U;

  /// @param most_bytes  Of the histories of threads that failed, together, and of the others'
  ///                    together. One thread keeps at most a quarter of it as a log.
  explicit EndedThreads(std::uint64_t most_bytes) : most_bytes_{most_bytes} {}

  struct Ended {
    pid_t pid = 0;
    pid_t tid = 0;
    std::string name;
    std::unique_ptr<tracee::EndedTrace> trace;
    std::uint64_t bytes = 0;
    bool failed = false;
  };

  /// The thread has panicked, and may end of that. Whoever did is kept longer than others are: what
  /// comes afterwards, other tests for example, does not push it out.
  void note_failure(const tracee::Thread& thread);
  /// The thread, which has a trace, is at its end; it gives the trace away.
  void add(tracee::Thread& thread);
  /// The process is gone, or has become another program.
  void forget(pid_t pid);
  /// Those of the process, the newest first. Valid until the next call of another method.
  [[nodiscard]] std::vector<Ended*> of(pid_t pid);
  [[nodiscard]] std::size_t size() const { return threads_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_[0] + bytes_[1]; }

 private:
  void shorten(Ended& ended, std::uint64_t bytes);
  void bound();
  /// Until the bound is kept, the oldest first. Of those that failed, or of the others.
  void shorten_oldest(bool failed);
  /// The oldest of those that failed, or of the others. False: there is none, or only the newest
  /// is left and is to stay.
  bool drop_oldest(bool failed, bool even_last);
  [[nodiscard]] bool exceeds(bool failed) const { return bytes_of(failed) > most_bytes_; }
  [[nodiscard]] std::uint64_t bytes_of(bool failed) const { return bytes_[failed ? 1 : 0]; }
  void count(const Ended& ended) { bytes_[ended.failed ? 1 : 0] += ended.bytes; }
  void discount(const Ended& ended) { bytes_[ended.failed ? 1 : 0] -= ended.bytes; }

  std::uint64_t most_bytes_;
  std::array<std::uint64_t, 2> bytes_{};  ///< Of those that did not fail, and of those that did.
  std::deque<Ended> threads_;             ///< Oldest first.
  std::set<tracee::ThreadId> failing_;    ///< They live.
};

}  // namespace backtrail::server
