// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Hides the recorder's memory from the program's limit on address space (RLIMIT_AS). The kernel
/// counts the recorder's mappings too, so the kernel's limit is set above the program's, and the
/// program is shown its own.

#include <cstdint>
#include <optional>

#include <sys/resource.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// The limit of one process. A forked child inherits a copy of this and of the kernel's limit; exec
/// changes neither.
class AddressLimit {
 public:
  /// Upper bound of the recorder's memory. The kernel's hard limit, which bounds only the soft
  /// limit, is above the program's by this much, because only a privileged process could raise it
  /// later.
  static constexpr std::uint64_t kMostBytes = 16ULL << 30;

  /// The program's own limit; nullopt if the kernel's is the same.
  [[nodiscard]] const std::optional<rlimit>& program() const { return program_; }
  /// Returns true if there is a limit and the recorder's memory counts against it.
  [[nodiscard]] bool counts_ours() const { return counts_ours_; }

  /// Raises the kernel's limit by `bytes`, the size of the recorder's memory, as far as permitted.
  void leave_room(pid_t pid, std::uint64_t bytes);
  /// Returns the limit to set in place of `wanted`, which the program asked for. If the program
  /// lacks permission for `wanted`, the result fails in the same way.
  [[nodiscard]] rlimit raised(const rlimit& wanted) const;
  /// Notes that the program set `wanted` and the kernel was given `given` in its place.
  void note_set(pid_t pid, const rlimit& wanted, const rlimit& given);
  /// Restores the program's limit, once the recorder has no memory left in it. Returns false if the
  /// server may not set the limit, so that the process itself must.
  bool lower(pid_t pid);

 private:
  bool set(pid_t pid, const rlimit& limit);

  std::uint64_t bytes_ = 0;
  std::optional<rlimit> program_;
  rlimit kernel_{RLIM_INFINITY, RLIM_INFINITY};  ///< The kernel's limit, as last seen.
  bool counts_ours_ = false;
};

}  // namespace backtrail::tracee
