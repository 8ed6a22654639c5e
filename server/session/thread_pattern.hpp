// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Thread ids in packets: "pPID.TID", "TID", -1 for all, 0 for any.
/// Source: GDB manual, "Packets" (thread-id syntax).

#include <optional>
#include <string>

#include "ptrace/tracee/thread_id.hpp"
#include "server/session/packet_text.hpp"

namespace backtrail::server {

/// One thread, or a set of threads by wildcard.
struct ThreadPattern {
  static constexpr pid_t kAny = 0;
  static constexpr pid_t kAll = -1;

  pid_t pid = kAny;
  pid_t tid = kAny;

  bool operator==(const ThreadPattern&) const = default;
  [[nodiscard]] bool matches(tracee::ThreadId thread) const {
    return (pid <= 0 || pid == thread.pid) && (tid <= 0 || tid == thread.tid);
  }
  /// Returns true if the pattern names no thread in particular ("0" or "p0.0").
  [[nodiscard]] bool is_any() const { return pid == kAny && tid == kAny; }
};

/// Takes a thread id from `text`. "pPID" alone means all threads of the process; a number without
/// 'p' is a TID of any process. nullopt if malformed.
[[nodiscard]] std::optional<ThreadPattern> take_thread_pattern(PacketText& text);

/// Takes a process id: the hex digits of a positive pid_t. nullopt if malformed.
[[nodiscard]] std::optional<pid_t> take_pid(PacketText& text);

/// Returns "pPID.TID" with the multiprocess extension, otherwise "TID".
[[nodiscard]] std::string format_thread(tracee::ThreadId thread, bool multiprocess);

}  // namespace backtrail::server
