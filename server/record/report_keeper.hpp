// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps threads' histories as they are when a sanitizer begins to report an error.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "decoder/trace/record.hpp"
#include "ptrace/tracee/thread.hpp"
#include "server/record/ending.hpp"

namespace backtrail::server {

class ReportKeeper {
 public:
  /// Records before a report that are kept whatever the thread does afterwards. Before it is known
  /// that AddressSanitizer will report, it clears buffers in a loop: 65,000 branches.
  static constexpr std::size_t kKept = std::size_t{1} << 18U;
  /// Branches kept at the end of a report if the process ends within it.
  static constexpr std::uint64_t kTail = 4096;

  struct Report {
    pid_t tid = 0;
    std::uint64_t position = 0;  ///< Number of the thread's records before the report.
    std::uint64_t sp = 0;        ///< The thread's stack pointer at that moment.
    bool may_end = true;
    std::vector<decoder::Record> before;  ///< The newest records before the report, oldest first.

    /// Returns the number of the first record in `before`.
    [[nodiscard]] std::uint64_t first() const { return position - before.size(); }
  };
  struct Reports {
    std::uint64_t count = 0;
    Report first;
    std::optional<Report> last;               ///< nullopt if there was only one.
    std::map<pid_t, std::uint64_t> left_out;  ///< Older branches that the threads' histories lack.

    [[nodiscard]] const Report& newest() const { return last ? *last : first; }
  };

  /// @param whole Every record is kept elsewhere.
  explicit ReportKeeper(bool whole) : whole_{whole} {}

  /// Call when a report begins; the thread is stopped there.
  void note(tracee::Thread& thread, bool may_end);
  /// Hands the thread's records on to its history as they are. An ending thread keeps that history;
  /// see EndedTrace.
  void keep(tracee::Thread& thread);
  /// Call when the process is gone or has executed another program.
  void forget(pid_t pid) { reports_.erase(pid); }
  /// Returns the process's reports; null if it made none.
  [[nodiscard]] const Reports* of(pid_t pid) const;

  /// Returns true if the process ends in the middle of the newest report, which is the thread's.
  [[nodiscard]] bool ends_in_report(tracee::Thread& thread, const Ending& ending) const;
  /// Adds facts for the crash file, see docs/core-format.md. `in_last`: the process ends in the
  /// newest report.
  void add_facts(pid_t pid, bool in_last, std::map<std::string, std::string>& about) const;

 private:
  bool whole_;
  std::map<pid_t, Reports> reports_;
};

}  // namespace backtrail::server
