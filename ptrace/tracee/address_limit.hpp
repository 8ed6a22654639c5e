#pragma once
/// @file
/// How much a program may map in all (RLIMIT_AS), where some of what is mapped there is ours. The
/// kernel counts that too, so its limit is above the program's, which must not see that.

#include <cstdint>
#include <optional>

#include <sys/resource.h>
#include <sys/types.h>

namespace backtrail::tracee {

/// That of one process. A child has a copy, and so has the kernel; exec changes nothing.
class AddressLimit {
 public:
  /// Ours are never more than that. The hard limit, which bounds nothing but the other one, is
  /// above the program's by this much, because only privileged ones could raise it once more.
  static constexpr std::uint64_t kMostBytes = 16ULL << 30;

  /// Where it is another one than the kernel's.
  [[nodiscard]] const std::optional<rlimit>& program() const { return program_; }
  /// There is a limit, and of what it leaves to the program we take.
  [[nodiscard]] bool counts_ours() const { return counts_ours_; }

  /// So many bytes are going to be ours. Lifts the kernel's limit, as far as it lets us.
  void leave_room(pid_t pid, std::uint64_t bytes);
  /// What to set where the program sets `wanted`. What it may not set, it may not either.
  [[nodiscard]] rlimit raised(const rlimit& wanted) const;
  /// The program has set `wanted`, and the kernel was given `given` for it.
  void note_set(pid_t pid, const rlimit& wanted, const rlimit& given);
  /// Nothing is ours any more, nor will be: the kernel's limit becomes the program's. False: we may
  /// not set it, the process itself would have to.
  bool lower(pid_t pid);

 private:
  bool set(pid_t pid, const rlimit& limit);

  std::uint64_t bytes_ = 0;
  std::optional<rlimit> program_;
  rlimit kernel_{RLIM_INFINITY, RLIM_INFINITY};  ///< As far as is known.
  bool counts_ours_ = false;
};

}  // namespace backtrail::tracee
