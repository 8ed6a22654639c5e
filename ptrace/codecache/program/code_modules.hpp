#pragma once
/// @file
/// The modules of a process, as they come and go.

#include <optional>
#include <vector>

#include "ptrace/codecache/program/code_module.hpp"

namespace backtrail::tracee::cache {

/// Those whose translations are kept.
struct KeptModules {
  std::vector<CodeModule> present;
  std::vector<CodeModule> gone;  ///< And no other one is where they were.
};

class CodeModules {
 public:
  using Ranges = std::vector<ExecutableMap::Range>;

  /// The range has been looked at, and is as it was then.
  [[nodiscard]] bool knows(const ExecutableMap::Range& range) const;
  /// It has been looked at; nothing: its translations are not to be kept. Returns those that are
  /// gone and whose place it takes: their translations are not to be kept any more.
  std::vector<CodeModule> add(const ExecutableMap::Range& range,
                              const std::optional<CodeModule>& module);
  /// Whatever overlaps [begin, end) is gone, or will not be the same. Returns what was kept of it.
  std::vector<CodeModule> lose(TraceeAddr begin, TraceeAddr end);
  /// The same for whatever is not among the ranges.
  std::vector<CodeModule> lose_all_but(const Ranges& ranges);
  /// Translations of some of [begin, end) are kept.
  [[nodiscard]] bool keeps(TraceeAddr begin, TraceeAddr end) const;
  [[nodiscard]] KeptModules kept() const;

 private:
  struct Known {
    ExecutableMap::Range range;
    std::optional<CodeModule> module;
  };
  template <typename Lost>
  std::vector<CodeModule> lose_if(Lost lost);

  std::vector<Known> known_;
  std::vector<CodeModule> gone_;
};

}  // namespace backtrail::tracee::cache
