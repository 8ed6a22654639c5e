#pragma once
/// @file
/// Threads' histories as they are when a sanitizer begins to report an error.

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
  /// Records before a report that are kept whatever the thread does afterwards. AddressSanitizer
  /// clears buffers in a loop before it is known that it reports: 65,000 branches.
  static constexpr std::size_t kKept = std::size_t{1} << 18U;
  /// Branches of a report that are kept at its end, when the process ends within it.
  static constexpr std::uint64_t kTail = 4096;

  struct Report {
    pid_t tid = 0;
    std::uint64_t position = 0;  ///< Records of the thread until then.
    std::uint64_t sp = 0;        ///< The thread's stack pointer there.
    bool may_end = true;
    std::vector<decoder::Record> before;  ///< The newest until then, oldest first.

    /// Number of the first of `before`.
    [[nodiscard]] std::uint64_t first() const { return position - before.size(); }
  };
  struct Reports {
    std::uint64_t count = 0;
    Report first;
    std::optional<Report> last;               ///< If there were more than one.
    std::map<pid_t, std::uint64_t> left_out;  ///< Older branches that threads' histories lack.

    [[nodiscard]] const Report& newest() const { return last ? *last : first; }
  };

  /// @param whole  Every record is kept elsewhere.
  explicit ReportKeeper(bool whole) : whole_{whole} {}

  /// A report begins; the thread is stopped there.
  void note(tracee::Thread& thread, bool may_end);
  /// The thread's history is handed on as it is. One that ends keeps that, see EndedTrace.
  void keep(tracee::Thread& thread);
  /// The process is gone, or has become another program.
  void forget(pid_t pid) { reports_.erase(pid); }
  /// nullptr: none was seen.
  [[nodiscard]] const Reports* of(pid_t pid) const;

  /// The process ends in the middle of the newest report, which is the thread's.
  [[nodiscard]] bool ends_in_report(tracee::Thread& thread, const Ending& ending) const;
  /// Facts for the crash file, see docs/core-format.md. `in_last`: the process ends in the newest.
  void add_facts(pid_t pid, bool in_last, std::map<std::string, std::string>& about) const;

 private:
  bool whole_;
  std::map<pid_t, Reports> reports_;
};

}  // namespace backtrail::server
