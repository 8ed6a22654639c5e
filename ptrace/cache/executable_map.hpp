#pragma once
/// @file
/// A program's code, and what may happen to it.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"
#include "ptrace/cache/quiet_pages.hpp"

namespace backtrail::tracee::cache {

/// The path of the kernel's code in every program.
inline constexpr std::string_view kVdso = "[vdso]";

/// Executable memory that can be read.
class ExecutableMap {
 public:
  /// `ours` begins a mapping that is not the program's. What is `quiet` is as the program made it.
  static Result<ExecutableMap> read(pid_t pid, TraceeAddr ours, const QuietPages& quiet);

  struct Range {
    TraceeAddr begin;
    TraceeAddr end;
    std::uint64_t offset = 0;
    dev_t device = 0;
    std::uint64_t inode = 0;
    std::string path;
    /// It can be written, here or through another mapping, without a call that we would see.
    bool may_change = false;
    /// Nobody but the process can write it, and only here; what happens to a file beneath it is
    /// not looked at.
    bool own = false;
  };

  [[nodiscard]] bool contains(TraceeAddr address) const { return find(address) != nullptr; }
  [[nodiscard]] const Range* find(TraceeAddr address) const;
  /// Some of [begin, end) is in it.
  [[nodiscard]] bool overlaps(TraceeAddr begin, TraceeAddr end) const;
  /// What is here and not, or not the same, in `newer`.
  [[nodiscard]] std::vector<std::pair<TraceeAddr, TraceeAddr>> lost_in(
      const ExecutableMap& newer) const;
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  /// All executable memory, ours too.
  [[nodiscard]] const std::vector<std::pair<TraceeAddr, TraceeAddr>>& everything() const {
    return everything_;
  }

 private:
  std::vector<Range> ranges_;  ///< Ascending.
  std::vector<std::pair<TraceeAddr, TraceeAddr>> everything_;
};

}  // namespace backtrail::tracee::cache
