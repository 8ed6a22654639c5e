// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The modules of a process over time.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ptrace/codecache/program/code_module.hpp"

namespace backtrail::tracee::cache {

/// Modules whose translations are kept.
struct PersistentModules {
  std::vector<CodeModule> present;
  std::vector<CodeModule> gone;  ///< No longer mapped, and no other module has taken their place.
};

class CodeModules {
 public:
  using Ranges = std::vector<ExecutableMap::Range>;

  /// Returns true if add() was called for the range and it has not changed since.
  [[nodiscard]] bool knows(const ExecutableMap::Range& range) const;
  /// Returns the module of a range that it knows; nullopt if there is none.
  [[nodiscard]] std::optional<CodeModule> find(const ExecutableMap::Range& range) const;
  /// Adds a range that was examined; `module` is nullopt if its translations must not be kept.
  /// Returns the modules that are gone and whose place it takes: their translations are not kept
  /// any more.
  std::vector<CodeModule> add(const ExecutableMap::Range& range,
                              const std::optional<CodeModule>& module);
  /// Removes all that overlaps [begin, end), because it is gone or will change. Returns the kept
  /// modules among them.
  std::vector<CodeModule> lose(TraceeAddr begin, TraceeAddr end);
  /// Removes all that is not among the ranges, likewise.
  std::vector<CodeModule> lose_all_but(const Ranges& ranges);
  /// Returns true if translations of a part of [begin, end) are kept.
  [[nodiscard]] bool keeps(TraceeAddr begin, TraceeAddr end) const;
  [[nodiscard]] PersistentModules kept() const;
  /// Keeps nothing any more of the modules for which `changed` returns true, given a path of the
  /// file as in /proc/PID/maps.
  void forget_if(const std::function<bool(const CodeModule&, const std::string&)>& changed);

 private:
  struct Known {
    ExecutableMap::Range range;
    std::optional<CodeModule> module;
  };
  struct Gone {
    CodeModule module;
    std::string path;
  };
  template <typename Lost>
  std::vector<CodeModule> lose_if(Lost lost);

  std::vector<Known> known_;
  std::vector<Gone> gone_;
};

}  // namespace backtrail::tracee::cache
