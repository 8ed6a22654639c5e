#pragma once
/// @file
/// What is left of a thread's trace when the thread has ended.

#include <cstdint>
#include <memory>

#include "decoder/bts/record_ring.hpp"

namespace backtrail::decoder {
class BtsHistory;
class CacheLog;
}  // namespace backtrail::decoder

namespace backtrail::tracee {

/// The thread's history and the log that nobody has decoded yet. It needs neither the thread nor
/// its process.
class EndedTrace {
 public:
  /// `log` may be null. The newest `log_bytes` of it are kept, in memory of their own.
  EndedTrace(std::unique_ptr<decoder::BtsHistory> history, std::unique_ptr<decoder::CacheLog> log,
             std::uint64_t log_bytes);
  ~EndedTrace();
  EndedTrace(const EndedTrace&) = delete;
  EndedTrace& operator=(const EndedTrace&) = delete;

  /// Memory that it takes, about.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Keeps about so much of the log, and six times as much of what is decoded already: the newest
  /// of either.
  void shorten(std::uint64_t bytes);
  /// Decodes the log. The records are valid until the trace is gone.
  const decoder::RecordRing& records();
  /// Branches that were not kept, at least, and that records() does not number; those of the log
  /// only after it.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  std::unique_ptr<decoder::BtsHistory> history_;
  std::unique_ptr<decoder::CacheLog> log_;
  std::uint64_t lost_ = 0;
};

}  // namespace backtrail::tracee
