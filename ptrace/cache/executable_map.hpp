#pragma once
/// @file
/// Which of a program's pages may be translated.

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::tracee::cache {

/// Executable memory that cannot change without a mapping call: readable, private, not writable.
/// Code elsewhere (writable, shared, execute-only) is not translated.
class ExecutableMap {
 public:
  static Result<ExecutableMap> read(pid_t pid);

  [[nodiscard]] bool contains(TraceeAddr address) const;
  /// Some of [begin, end) is in it.
  [[nodiscard]] bool overlaps(TraceeAddr begin, TraceeAddr end) const;
  /// Everything in this map is in `newer` as it is here.
  [[nodiscard]] bool kept_by(const ExecutableMap& newer) const;

  struct Range {
    TraceeAddr begin;
    TraceeAddr end;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::string path;
    bool operator==(const Range&) const = default;
  };
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
