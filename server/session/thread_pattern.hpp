#pragma once
/// @file
/// Thread ids as packets write them: "pPID.TID", "TID", -1 for all, 0 for any.
/// Source: GDB manual, "Packets" (thread-id syntax).

#include <optional>
#include <string>

#include "ptrace/tracee/thread_id.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server {

/// One thread, or a set of them by wildcard.
struct ThreadPattern {
  static constexpr pid_t kAny = 0;
  static constexpr pid_t kAll = -1;

  pid_t pid = kAny;
  pid_t tid = kAny;

  bool operator==(const ThreadPattern&) const = default;
  [[nodiscard]] bool matches(tracee::ThreadId thread) const {
    return (pid <= 0 || pid == thread.pid) && (tid <= 0 || tid == thread.tid);
  }
  /// Names no thread in particular ("0" or "p0.0").
  [[nodiscard]] bool is_any() const { return pid == kAny && tid == kAny; }
};

/// Takes a thread id from `text`. "pPID" alone means all of its threads; a number without 'p' is a
/// TID of any process.
[[nodiscard]] std::optional<ThreadPattern> take_thread_pattern(PacketText& text);

/// Takes a process id: hex digits of a positive pid_t.
[[nodiscard]] std::optional<pid_t> take_pid(PacketText& text);

/// "pPID.TID" with the multiprocess extension, otherwise "TID".
[[nodiscard]] std::string format_thread(tracee::ThreadId thread, bool multiprocess);

}  // namespace backtrail::server
