#pragma once
/// @file
/// A program's code, and what may happen to it.

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/codecache/program/quiet_pages.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee::cache {

/// The path of the kernel's code in every program.
inline constexpr std::string_view kVdso = "[vdso]";

/// Executable memory that can be read.
class ExecutableMap {
 public:
  /// Whether a private mapping may change though the program cannot write there.
  using MayChange = std::function<bool(const MapEntry&)>;
  /// `ours` begins a mapping that is not the program's. What is `quiet` is as the program made it.
  /// `maps` are those of the process.
  static ExecutableMap from(const std::vector<MapEntry>& maps, TraceeAddr ours,
                            const QuietPages& quiet, const MayChange& may_change);

  struct Range {
    TraceeAddr begin;
    TraceeAddr end;
    std::uint64_t offset = 0;
    dev_t device = 0;
    std::uint64_t inode = 0;
    std::string path;
    /// It can be written, here or through another mapping, without a call that we would see.
    bool may_change = false;
    /// Nobody but the process can write it, and only here.
    bool own = false;
    /// Only the process can write it, but the file beneath may change: pages that the process has
    /// written are copies of its own, the others are as the file is.
    bool copies = false;
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
