// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The trace that remains of a thread after its end.

#include <cstdint>
#include <memory>

#include "decoder/bts/record_ring.hpp"

namespace backtrail::decoder {
class BtsHistory;
class CacheLog;
}  // namespace backtrail::decoder

namespace backtrail::tracee {

/// A thread's history and the log that was not decoded yet. Needs neither the thread nor its
/// process.
class EndedTrace {
 public:
  /// Keeps the newest `log_bytes` of `log`, copied to memory of its own. `log` may be null.
  EndedTrace(std::unique_ptr<decoder::BtsHistory> history, std::unique_ptr<decoder::CacheLog> log,
             std::uint64_t log_bytes);
  ~EndedTrace();
  EndedTrace(const EndedTrace&) = delete;
  EndedTrace& operator=(const EndedTrace&) = delete;

  /// Returns the approximate memory it takes, in bytes.
  [[nodiscard]] std::uint64_t bytes() const;
  /// Keeps roughly the newest `bytes` bytes of the log, and the newest six times as many bytes of
  /// decoded records.
  void shorten(std::uint64_t bytes);
  /// Decodes the log. The records are valid until the trace is destroyed.
  const decoder::RecordRing& records();
  /// Returns a lower bound of the branches that were not kept and that records() does not number.
  /// Includes those of the log only after records().
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  std::unique_ptr<decoder::BtsHistory> history_;
  std::unique_ptr<decoder::CacheLog> log_;
  std::uint64_t lost_ = 0;
};

}  // namespace backtrail::tracee
